import Foundation
import Multicast
import Synchronization
import TestSupport
import Testing

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Two backends over one folder, as in two processes.
///
/// Most tests run an operation of one backend before each system call of the other backend's operation in turn.
@Suite struct SharedFolderTests {
  private let temporary = TemporaryFolder(inMemory: true)
  private let old = Data("old".utf8)
  private let new = Data("new, and longer".utf8)
  private let theirs = Data("theirs".utf8)

  /// Runs a closure before a given system call of a backend, and before each later call until the closure succeeds.
  ///
  /// The closure doesn't succeed while a lock keeps it out. An interruption also makes certain calls fail.
  private final class Interruption: Sendable {
    private let callCount = Atomic(0)
    private let interruptedCall = Lock<String?>(nil)
    private let isDue = Lock(false)
    let position: Int
    private let faults: [String: CInt]
    private let body: @Sendable () -> Bool
    private let afterwards: @Sendable () -> Void

    /// - Parameters:
    ///   - position: The number of the call, from 1.
    ///   - faults: The error numbers of the calls that fail, by operation and file name.
    ///   - body: The closure to run. It returns `false` if a lock kept it out.
    ///   - afterwards: A closure that runs before each further call once `body` has succeeded.
    init(
      before position: Int, faults: [String: CInt], body: @escaping @Sendable () -> Bool,
      afterwards: @escaping @Sendable () -> Void
    ) {
      self.position = position
      self.faults = faults
      self.body = body
      self.afterwards = afterwards
    }

    var fileSystem: FileSystem {
      FileSystem { call in
        let callDescription = "\(call.operation) \(URL(filePath: call.path).lastPathComponent)"
        let number = self.callCount.add(1, ordering: .relaxed).newValue
        if number == self.position {
          self.interruptedCall.withLock { $0 = callDescription }
          self.isDue.withLock { $0 = true }
        }
        if number >= self.position { self.interrupt() }
        return self.faults[callDescription]
      }
    }

    private func interrupt() {
      if isDue.withLock({ $0 }) {
        let isDone = body()
        isDue.withLock { $0 = !isDone }
      } else {
        afterwards()
      }
    }

    /// Runs the closure now if locks kept it out during the whole operation.
    func finish() {
      if isDue.withLock({ $0 }) { #expect(body()) }
    }

    /// The call before which the closure was due.
    var call: String? { interruptedCall.withLock { $0 } }

    /// Whether there were fewer calls than `position`.
    var isExhausted: Bool { callCount.load(ordering: .relaxed) < position }
  }

  /// Returns a backend that doesn't wait for locks.
  private func makeBackend(_ fileSystem: FileSystem = FileSystem()) -> FileBackend {
    FileBackend(folder: temporary.url, fileSystem: fileSystem, lockTimeout: .zero)
  }

  /// Records the error of an operation as an issue, unless a lock kept the operation out.
  ///
  /// - Returns: `false` if a lock kept it out.
  private static func recordUnlessLockedOut(_ error: any Error) -> Bool {
    switch error as? StoreError {
    case .writeFailed(let error) where error.code == EWOULDBLOCK,
      .removeFailed(let error) where error.code == EWOULDBLOCK:
      return false
    default:
      Issue.record(error)
      return true
    }
  }

  /// The folder's name in the descriptions of calls.
  private var folderName: String { temporary.url.lastPathComponent }

  private var file: URL { temporary.url.appending(path: "a.value") }

  private var contents: [String] {
    get throws {
      try FileManager.default.contentsOfDirectory(atPath: temporary.url.path(percentEncoded: false)).sorted()
    }
  }

  /// Runs `ourOperation` once for each of its system calls, and interrupts it before that call with `theirOperation`.
  ///
  /// Each run starts in a new folder that contains the old bytes.
  ///
  /// - Parameters:
  ///   - failingCall: A call of `ourOperation` that fails.
  ///   - hasLocks: Whether the volume supports locks.
  ///   - startsEmpty: Whether the folder is empty instead at the start of each run.
  ///   - theirOperation: The operation of the other backend.
  ///   - ourOperation: The operation that is interrupted.
  ///   - afterwards: A closure that runs before each call of `ourOperation` after the interruption.
  ///   - check: Checks the result of both with a new backend, given the call before which `theirOperation` was due.
  private func interleave(
    failing failingCall: String? = nil, hasLocks: Bool = true, startsEmpty: Bool = false,
    _ theirOperation: @escaping @Sendable (inout FileBackend) throws -> Void,
    with ourOperation: (inout FileBackend) throws -> Void,
    afterwards: @escaping @Sendable () -> Void = {},
    check: (FileBackend, _ interruptedCall: String?) throws -> Void
  ) throws {
    var faults: [String: CInt] = [:]
    if let failingCall { faults[failingCall] = EIO }
    if !hasLocks { faults["flock \(folderName)"] = ENOTSUP }
    for position in 1... {
      var initialBackend = makeBackend()
      try initialBackend.write(old, to: "a")
      if startsEmpty { try initialBackend.remove("a") }
      let interruption = Interruption(before: position, faults: faults) { [temporary] in
        let fileSystem = FileSystem { $0.operation == "flock" && !hasLocks ? ENOTSUP : nil }
        var other = FileBackend(folder: temporary.url, fileSystem: fileSystem, lockTimeout: .zero)
        do {
          try theirOperation(&other)
          return true
        } catch {
          return Self.recordUnlessLockedOut(error)
        }
      } afterwards: {
        afterwards()
      }
      var backend = makeBackend(interruption.fileSystem)
      try ourOperation(&backend)
      if interruption.isExhausted { break }
      interruption.finish()
      try check(makeBackend(), interruption.call)
      try FileManager.default.removeItem(at: temporary.url)
    }
  }

  @Test func `A write during a write leaves one of the two values, complete`() throws {
    try interleave { [theirs] in
      try $0.write(theirs, to: "a")
    } with: {
      try $0.write(new, to: "a")
    } check: { backend, _ in
      var backend = backend
      let found = try backend.read("a")
      #expect(found == new || found == theirs)
      #expect(try contents == ["a.value"])
    }
  }

  @Test func `A removal during a write leaves the new bytes or none`() throws {
    try interleave {
      try $0.remove("a")
    } with: {
      try $0.write(new, to: "a")
    } check: { backend, _ in
      var backend = backend
      let found = try backend.read("a")
      #expect(found == new || found == nil)
      #expect(try contents == (found == nil ? [] : ["a.value"]))
    }
  }

  @Test func `A write during a removal leaves the written bytes or none`() throws {
    try interleave { [theirs] in
      try $0.write(theirs, to: "a")
    } with: {
      try $0.remove("a")
    } check: { backend, _ in
      var backend = backend
      let found = try backend.read("a")
      #expect(found == theirs || found == nil)
      #expect(try contents == (found == nil ? [] : ["a.value"]))
    }
  }

  @Test func `A read during a write returns the old bytes or the new ones`() throws {
    let found = Lock<Data?>(nil)
    try interleave { backend in
      let bytes = try backend.read("a")
      found.withLock { $0 = bytes }
    } with: {
      try $0.write(new, to: "a")
    } check: { _, _ in
      let bytes = found.withLock { $0 }
      #expect(bytes == old || bytes == new)
    }
  }

  @Test func `A read that is interrupted by a write returns the old bytes or the new ones`() throws {
    var found: Data?
    try interleave { [new] in
      try $0.write(new, to: "a")
    } with: {
      found = try $0.read("a")
    } check: { _, _ in
      #expect(found == old || found == new)
    }
  }

  @Test(arguments: [true, false]) func `A value written during a quarantine stays`(hasLocks: Bool) throws {
    var quarantinePath: String?
    try interleave(hasLocks: hasLocks) { [theirs] in
      try $0.write(theirs, to: "a")
    } with: {
      quarantinePath = try $0.quarantine(old, of: "a", at: Date())
    } afterwards: { [file, theirs] in
      // Without locks, the quarantine may move the value of the other backend, and then moves it back.
      if hasLocks { #expect(FileManager.default.contents(atPath: file.path(percentEncoded: false)) == theirs) }
    } check: { backend, _ in
      var backend = backend
      let found = try backend.read("a")
      #expect(found == theirs)
      if let quarantinePath { #expect(try Data(contentsOf: URL(filePath: quarantinePath)) == old) }
      #expect(try contents.count == (quarantinePath == nil ? 1 : 2))
    }
  }

  @Test func `Two concurrent quarantines keep one copy of the bytes`() throws {
    let theirPath = Lock<String?>(nil)
    var ourPath: String?
    try interleave { [old] backend in
      let path = try backend.quarantine(old, of: "a", at: Date())
      theirPath.withLock { $0 = path }
    } with: {
      ourPath = try $0.quarantine(old, of: "a", at: Date())
    } check: { backend, _ in
      var backend = backend
      let found = try backend.read("a")
      #expect(found == nil)
      let quarantinePaths = [ourPath, theirPath.withLock { $0 }].compactMap { $0 }
      #expect(quarantinePaths.count == 1)
      #expect(try quarantinePaths.map { try Data(contentsOf: URL(filePath: $0)) } == [old])
      #expect(try contents.count == 1)
    }
  }

  @Test(arguments: [true, false]) func `A value written during a failing write stays`(startsEmpty: Bool) throws {
    // The folder can't be synchronized, so the write is rolled back.
    try interleave(failing: "fsync \(folderName)", startsEmpty: startsEmpty) { [theirs] in
      try $0.write(theirs, to: "a")
    } with: { backend in
      #expect(throws: StoreError.self) { try backend.write(new, to: "a") }
    } check: { backend, interruptedCall in
      var backend = backend
      let found = try backend.read("a")
      #expect(found == theirs, "\(interruptedCall ?? "")")
      #expect(try contents == ["a.value"])
    }
  }

  @Test func `A removal during a failing write isn't undone`() throws {
    try interleave(failing: "fsync \(folderName)") {
      try $0.remove("a")
    } with: { backend in
      #expect(throws: StoreError.self) { try backend.write(new, to: "a") }
    } check: { backend, interruptedCall in
      var backend = backend
      let found = try backend.read("a")
      #expect(found == nil, "\(interruptedCall ?? "")")
      #expect(try contents == [])
    }
  }

  @Test func `A value written during a failing removal stays`() throws {
    try interleave(failing: "fsync \(folderName)") { [theirs] in
      try $0.write(theirs, to: "a")
    } with: { backend in
      #expect(throws: StoreError.self) { try backend.remove("a") }
    } check: { backend, _ in
      var backend = backend
      let found = try backend.read("a")
      #expect(found == theirs)
      #expect(try contents == ["a.value"])
    }
  }

  @Test func `A value written during a failing quarantine stays`() throws {
    try interleave(failing: "fsync \(folderName)") { [theirs] in
      try $0.write(theirs, to: "a")
    } with: { backend in
      // If the value of the other backend is found in time, nothing is moved, and nothing fails.
      do { #expect(try backend.quarantine(old, of: "a", at: Date()) == nil) } catch {}
    } check: { backend, interruptedCall in
      var backend = backend
      let found = try backend.read("a")
      #expect(found == theirs, "\(interruptedCall ?? "")")
    }
  }

  @Test func `A change writes its bytes without the lock, then holds the lock from its first read to its end`() throws {
    var initialBackend = makeBackend()
    try initialBackend.write(old, to: "a")
    let path = String(temporary.url.path(percentEncoded: false).dropLast())
    let lockedCalls = Lock<[String]>([])
    let fileSystem = FileSystem { call in
      do throws(SystemError) {
        // This opens the folder again, so the backend's lock excludes this attempt as it would exclude another process.
        try FileSystem().lock(FileSystem().openFolder(path), atMost: .zero)
      } catch {
        // The prefix leaves out the random part of the names of temporary files and of the folder. The name of a
        // journal has the same prefix as those of temporary files.
        lockedCalls.withLock { $0.append("\(call.operation) \(URL(filePath: call.path).lastPathComponent.prefix(9))") }
      }
      return nil
    }
    var backend = makeBackend(fileSystem)
    #expect(try backend.read("a") == old)
    lockedCalls.withLock { $0 = [] }
    try backend.write(new, to: "a")
    let folderSync = "fsync \(folderName.prefix(9))"
    // Under the lock, each change first tries to open a journal, to finish an interrupted commit.
    #expect(
      lockedCalls.withLock { $0 } == [
        "open .DataStor", "open a.value", "fstat a.value", "fstat a.value", "read a.value", "rename a.value",
        folderSync,
      ])
    lockedCalls.withLock { $0 = [] }
    try backend.remove("a")
    #expect(
      lockedCalls.withLock { $0 } == [
        "open .DataStor", "open a.value", "fstat a.value", "fstat a.value", "read a.value", "rename .DataStor",
        folderSync, "unlink .DataStor",
      ])
    lockedCalls.withLock { $0 = [] }
    // This read takes no lock, because there is no interrupted commit to finish.
    #expect(try backend.read("a") == nil)
    #expect(lockedCalls.withLock { $0 } == [])
  }

  @Test func `Two backends can create the same missing folders at the same time`() throws {
    let inner = temporary.url.appending(path: "outer/inner", directoryHint: .isDirectory)
    for position in 1... {
      let interruption = Interruption(before: position, faults: [:]) { [theirs] in
        var other = FileBackend(folder: inner, fileSystem: FileSystem(), lockTimeout: .zero)
        do {
          try other.write(theirs, to: "b")
          return true
        } catch {
          return Self.recordUnlessLockedOut(error)
        }
      } afterwards: {
      }
      var backend = FileBackend(folder: inner, fileSystem: interruption.fileSystem, lockTimeout: .zero)
      try backend.write(new, to: "a")
      if interruption.isExhausted { break }
      interruption.finish()
      #expect(try backend.read("a") == new, "\(interruption.call ?? "")")
      #expect(try backend.read("b") == theirs, "\(interruption.call ?? "")")
      try FileManager.default.removeItem(at: temporary.url)
    }
  }

  @Test func `A call that can't get the lock in time throws and changes nothing`() throws {
    var backend = makeBackend()
    try backend.write(old, to: "a")
    let (fileSystem, path) = (FileSystem(), String(temporary.url.path(percentEncoded: false).dropLast()))
    let folder = try fileSystem.openFolder(path)
    try fileSystem.lock(folder, atMost: .zero)
    let error = SystemError(code: EWOULDBLOCK, operation: "flock", path: path)
    #expect(throws: StoreError.writeFailed(error)) { try backend.write(new, to: "a") }
    #expect(throws: StoreError.removeFailed(error)) { try backend.remove("a") }
    #expect(throws: StoreError.writeFailed(error)) { try backend.quarantine(old, of: "a", at: Date()) }
    #expect(try backend.read("a") == old)
    #expect(try contents == ["a.value"])
    fileSystem.unlock(folder)
    try backend.write(new, to: "a")
    #expect(try backend.read("a") == new)
    extendLifetime(folder)
  }
}
