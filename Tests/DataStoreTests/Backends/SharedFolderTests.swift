import Foundation
import Multicast
import Synchronization
import Testing

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Two backends on one folder, as in two processes: what one does happens amid what the other does, before each of its
/// calls in turn.
@Suite struct SharedFolderTests {
  private let temporary = TemporaryFolder(inMemory: true)
  private let old = Data("old".utf8)
  private let new = Data("new, and longer".utf8)
  private let theirs = Data("theirs".utf8)

  /// Does something once, before one of the calls, and may let a call fail.
  private final class Interruption: Sendable {
    private let count = Atomic(0)
    private let interruptedCall = Lock<String?>(nil)
    let position: Int
    private let failing: String?
    private let body: @Sendable () -> Void

    init(before position: Int, failing: String? = nil, body: @escaping @Sendable () -> Void) {
      self.position = position
      self.failing = failing
      self.body = body
    }

    var fileSystem: FileSystem {
      FileSystem { call in
        let line = "\(call.operation) \(URL(filePath: call.path).lastPathComponent)"
        if self.count.add(1, ordering: .relaxed).newValue == self.position {
          self.interruptedCall.withLock { $0 = line }
          self.body()
        }
        return line == self.failing ? EIO : nil
      }
    }

    /// The call before which it came.
    var call: String? { interruptedCall.withLock { $0 } }

    /// Whether there were fewer calls.
    var isExhausted: Bool { count.load(ordering: .relaxed) < position }
  }

  private func backend(_ fileSystem: FileSystem = FileSystem()) -> FileBackend {
    FileBackend(folder: temporary.url, fileSystem: fileSystem)
  }

  private var contents: [String] {
    get throws {
      try FileManager.default.contentsOfDirectory(atPath: temporary.url.path(percentEncoded: false)).sorted()
    }
  }

  /// Plays `ours` with `their` part before each of its calls in turn, from a folder with the old bytes.
  private func interleave(
    failing: String? = nil, _ their: @escaping @Sendable (inout FileBackend) throws -> Void,
    with ours: (inout FileBackend) throws -> Void, check: (FileBackend, _ interruptedCall: String?) throws -> Void
  ) throws {
    for position in 1... {
      var setUp = backend()
      try setUp.write(old, to: "a")
      let interruption = Interruption(before: position, failing: failing) { [temporary] in
        var other = FileBackend(folder: temporary.url, fileSystem: FileSystem())
        do {
          try their(&other)
        } catch {
          Issue.record(error)
        }
      }
      var backend = backend(interruption.fileSystem)
      try ours(&backend)
      if interruption.isExhausted { break }
      try check(self.backend(), interruption.call)
      try FileManager.default.removeItem(at: temporary.url)
    }
  }

  @Test func `A write amid a write: one of them is there, whole`() throws {
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

  @Test func `A removal amid a write: the new bytes are there, or none`() throws {
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

  @Test func `A write amid a removal: their bytes are there, or none`() throws {
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

  @Test func `A write amid a read: it reads the old bytes or the new ones`() throws {
    var found: Data?
    try interleave { [new] in
      try $0.write(new, to: "a")
    } with: {
      found = try $0.read("a")
    } check: { _, _ in
      #expect(found == old || found == new)
    }
  }

  @Test func `A write amid moving aside: what they wrote stays`() throws {
    var place: String?
    try interleave { [theirs] in
      try $0.write(theirs, to: "a")
    } with: {
      place = try $0.setAside(old, of: "a", at: Date())
    } check: { backend, _ in
      var backend = backend
      let found = try backend.read("a")
      #expect(found == theirs)
      #expect(try place.map { try Data(contentsOf: URL(filePath: $0)) } == place.map { _ in old })
      #expect(try contents.count == (place == nil ? 1 : 2))
    }
  }

  @Test func `Moving aside amid moving aside: the bytes are kept once`() throws {
    let place = Lock<String?>(nil)
    var own: String?
    try interleave { [old] backend in
      let moved = try backend.setAside(old, of: "a", at: Date())
      place.withLock { $0 = moved }
    } with: {
      own = try $0.setAside(old, of: "a", at: Date())
    } check: { backend, _ in
      var backend = backend
      let found = try backend.read("a")
      #expect(found == nil)
      let places = [own, place.withLock { $0 }].compactMap { $0 }
      #expect(places.count == 1)
      #expect(try places.map { try Data(contentsOf: URL(filePath: $0)) } == [old])
      #expect(try contents.count == 1)
    }
  }

  @Test func `A write amid a write that fails stays, unless it came in the instant of a renaming`() throws {
    // The folder cannot be synchronised, so the new bytes are taken back.
    try interleave(failing: "fsync \(temporary.url.lastPathComponent)") { [theirs] in
      try $0.write(theirs, to: "a")
    } with: { backend in
      #expect(throws: StoreError.self) { try backend.write(new, to: "a") }
    } check: { backend, interruptedCall in
      var backend = backend
      let found = try backend.read("a")
      let isInstant = interruptedCall == "fstat a.value" || interruptedCall == "rename a.value"
      #expect(found == theirs || isInstant && found == old, "\(interruptedCall ?? "")")
      #expect(try contents == ["a.value"])
    }
  }

  @Test func `A write amid a removal that fails: if it came last, it stays`() throws {
    try interleave(failing: "fsync \(temporary.url.lastPathComponent)") { [theirs] in
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
}
