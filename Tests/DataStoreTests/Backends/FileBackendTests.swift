import Foundation
import Multicast
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

/// The system calls of the backend, their order, and the state after one of them fails.
@Suite struct FileBackendTests {
  private let temporary = TemporaryFolder()
  private let old = Data("old".utf8)
  private let new = Data("new, and longer".utf8)

  /// Records calls, and can make one of them fail.
  private final class CallRecorder: Sendable {
    let calls = Lock<[FileSystem.Call]>([])
    private let failingCall: Int?
    private let code: CInt

    init(failingCall: Int? = nil, code: CInt = EIO) {
      self.failingCall = failingCall
      self.code = code
    }

    var fileSystem: FileSystem {
      FileSystem(fault: { call in
        self.calls.withLock { calls in
          calls.append(call)
          return calls.count == self.failingCall ? self.code : nil
        }
      })
    }

    /// The recorded calls, with the names of staged files and of the journal replaced by `temporary`.
    var lines: [String] {
      calls.withLock { calls in
        calls.map { call in
          let name = URL(filePath: call.path).lastPathComponent
          return "\(call.operation) \(name.hasPrefix(".DataStore-") ? "temporary" : name)"
        }
      }
    }

    /// Whether a call was to fail but wasn't reached, because fewer calls were made.
    var isFailurePending: Bool { calls.withLock { $0.count < failingCall ?? 0 } }
  }

  private func makeBackend(_ recorder: CallRecorder = CallRecorder()) -> FileBackend {
    FileBackend(folder: temporary.url, fileSystem: recorder.fileSystem)
  }

  private var contents: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: temporary.url.path(percentEncoded: false)) }
  }

  private var folderName: String { temporary.url.lastPathComponent }

  private var parentName: String { temporary.url.deletingLastPathComponent().lastPathComponent }

  @Test func `A write synchronizes the new bytes, replaces the old ones, and then synchronizes the folder`() throws {
    var backend = makeBackend()
    try backend.write(old, to: "a")
    let recorder = CallRecorder()
    var second = makeBackend(recorder)
    try second.write(new, to: "a")
    #expect(
      recorder.lines == [
        // The backend looks for a journal, and for staged files of processes that have ended.
        "open \(folderName)", "flock \(folderName)", "open temporary", "open \(folderName)",
        "readdir \(folderName)", "readdir \(folderName)", "readdir \(folderName)", "readdir \(folderName)",
        // The folder is made durable in its parent.
        "open \(parentName)", "fsync \(parentName)",
        // The new bytes are durable before the folder is locked.
        "create temporary", "flock temporary", "fstat temporary", "write temporary", "fsync temporary",
        // The folder is locked, and has no journal of an interrupted commit.
        "flock \(folderName)", "open temporary",
        // The old bytes are read, because they are restored if a later call fails.
        "open a.value", "fstat a.value", "fstat a.value", "read a.value", "rename a.value", "fsync \(folderName)",
      ])
  }

  @Test func `A folder is created only after its parent is durable, and is then made durable itself`() throws {
    try temporary.create()
    let recorder = CallRecorder()
    var backend = FileBackend(folder: temporary.url.appending(path: "outer/inner"), fileSystem: recorder.fileSystem)
    try backend.write(old, to: "a")
    #expect(
      recorder.lines.prefix(14) == [
        "open inner", "stat inner", "stat outer", "stat \(folderName)", "open \(parentName)",
        "fsync \(parentName)", "mkdir outer", "open \(folderName)", "fsync \(folderName)", "mkdir inner", "open outer",
        "fsync outer", "open inner", "create temporary",
      ])
  }

  @Test func `An existing folder is made durable in its parent once`() throws {
    try temporary.create()
    let recorder = CallRecorder()
    var backend = makeBackend(recorder)
    for _ in 1...3 { try backend.write(old, to: "a") }
    #expect(
      recorder.lines.drop { !$0.hasSuffix(parentName) }.prefix(3) == [
        "open \(parentName)", "fsync \(parentName)", "create temporary",
      ])
    #expect(recorder.lines.filter { $0 == "fsync \(parentName)" }.count == 1)
  }

  @Test(arguments: [EACCES, EPERM, EROFS, EINVAL])
  func `A write succeeds even if the parent of an existing folder can't be synchronized`(code: CInt) throws {
    try temporary.create()
    for failingOperation in ["open", "fsync"] {
      let failureCount = Lock(0)
      let fileSystem = FileSystem { [parentName] call in
        guard call.operation == failingOperation, URL(filePath: call.path).lastPathComponent == parentName else {
          return nil
        }
        failureCount.withLock { $0 += 1 }
        return code
      }
      var backend = FileBackend(folder: temporary.url, fileSystem: fileSystem)
      try backend.write(old, to: "a")
      #expect(failureCount.withLock { $0 } == 1)
    }
  }

  @Test(arguments: 2...8)
  func `If a folder can't be created durably, no new folder is left`(failingCall: Int) throws {
    // The first call opens the folder. The next four look for the folder and its parent, and make the parent durable.
    // The last three create the folder, and make it durable.
    var backend = makeBackend(CallRecorder(failingCall: failingCall))
    #expect(throws: StoreError.self) { try backend.write(old, to: "a") }
    #expect(!FileManager.default.fileExists(atPath: temporary.url.path(percentEncoded: false)))
  }

  @Test func `Reading a file or writing a value above the size limit throws`() throws {
    var backend = makeBackend()
    try backend.write(old, to: "a")
    let path = temporary.url.appending(path: "a.value").path(percentEncoded: false)
    #expect(truncate(path, 1 << 40) == 0)
    #expect(throws: StoreError.readFailed(SystemError(code: EFBIG, operation: "read", path: path))) {
      try backend.read("a")
    }
    // The file isn't replaced either: its old bytes can't be read, so they couldn't be restored after an error.
    #expect(throws: StoreError.self) { try backend.write(old, to: "a") }
    #expect(truncate(path, 3) == 0)
    let fileSystem = FileSystem(maximumFileSize: 5)
    var limitedBackend = FileBackend(folder: temporary.url, fileSystem: fileSystem)
    try limitedBackend.write(Data("12345".utf8), to: "a")
    #expect(throws: StoreError.self) { try limitedBackend.write(Data("123456".utf8), to: "a") }
    #expect(try limitedBackend.read("a") == Data("12345".utf8))
    try backend.write(Data("123456".utf8), to: "a")
    #expect(throws: StoreError.self) { try limitedBackend.read("a") }
    #expect(try contents == ["a.value"])
  }

  @Test func `A new folder at the watched path is watched from the next read on`() throws {
    let inner = temporary.url.appending(path: "outer/inner")
    var backend = FileBackend(folder: inner)
    try backend.write(old, to: "a")
    let wakeCount = Lock(0)
    try backend.startWatching { wakeCount.withLock { $0 += 1 } }
    try FileManager.default.moveItem(
      at: temporary.url.appending(path: "outer"), to: temporary.url.appending(path: "elsewhere"))
    // The moved folder is watched until the read below opens the new one.
    var other = FileBackend(folder: inner)
    try other.write(new, to: "a")
    #expect(try backend.takeExternalChanges() == .names([]))
    #expect(try backend.read("b") == nil)
    #expect(wakeCount.withLock { $0 } == 1)
    #expect(try backend.takeExternalChanges() == .unknown)
    try other.write(old, to: "a")
    // On Darwin the system reports changes late.
    #if !canImport(Darwin)
      #expect(try backend.takeExternalChanges() == .names(["a"]))
    #endif
  }

  @Test func `A folder that another process creates during a removal is checked for changes afterwards`() throws {
    var (backend, other) = (makeBackend(), makeBackend())
    let wakeCount = Lock(0)
    try backend.startWatching { wakeCount.withLock { $0 += 1 } }
    let isMade = try backend.commit([]) { (backend) throws(StoreError) in
      try other.write(new, to: "a")
      // This check takes the only report that the folder appeared, while the folder still counts as missing.
      _ = try backend.takeExternalChanges()
      return .proceed(removing: ["b"])
    }
    #expect(isMade)
    #expect(wakeCount.withLock { $0 } > 0)
    #expect(try backend.takeExternalChanges() == .unknown)
    #expect(try backend.read("a") == new)
  }

  #if !canImport(Darwin)
    @Test func `If replacing a watch fails, the old watch continues, and reports unknown changes after the next read`()
      throws
    {
      let inner = temporary.url.appending(path: "outer/inner")
      let (outer, elsewhere) = (temporary.url.appending(path: "outer"), temporary.url.appending(path: "elsewhere"))
      let nextErrorCodes = Lock<[CInt?]>([])
      let fileSystem = FileSystem { call in
        guard call.operation == "inotify_add_watch" else { return nil }
        return nextErrorCodes.withLock { $0.isEmpty ? nil : $0.removeFirst() }
      }
      var (backend, other) = (FileBackend(folder: inner, fileSystem: fileSystem), FileBackend(folder: inner))
      try backend.write(old, to: "a")
      try backend.startWatching {}
      try FileManager.default.moveItem(at: outer, to: elsewhere)
      // Of the calls of `inotify_add_watch`, the first doesn't find `inner`, the second doesn't find `outer`, and the
      // third watches the parent of `outer`. The fourth looks for `inner` again, and fails.
      nextErrorCodes.withLock { $0 = [nil, nil, nil, EACCES] }
      // The read throws because the folder is missing. It doesn't report that the watch couldn't be replaced.
      #expect(throws: StoreError.self) { try backend.read("a") }
      #expect(nextErrorCodes.withLock { $0 } == [])
      try FileManager.default.moveItem(at: elsewhere, to: outer)
      try other.write(new, to: "a")
      #expect(try backend.takeExternalChanges() == .names(["a"]))
      // The read checks the folder again and finds the watched one. Any file may have changed since the failed check.
      #expect(try backend.read("a") == new)
      #expect(try backend.takeExternalChanges() == .unknown)
      try other.write(old, to: "a")
      #expect(try backend.takeExternalChanges() == .names(["a"]))
    }

    @Test func `A watched folder that was removed while open is watched again when it reappears`() throws {
      var backend = makeBackend()
      try backend.write(old, to: "a")
      try backend.remove("a")
      try backend.startWatching {}
      // The system reports the removal of a folder only when no process has it open.
      let openedFolder = try FileSystem().openFolder(temporary.url.path(percentEncoded: false))
      try FileManager.default.removeItem(at: temporary.url)
      // The read throws because the folder has existed before. It also moves the watch to the parent.
      #expect(throws: StoreError.self) { try backend.read("a") }
      _ = try backend.takeExternalChanges()
      var other = makeBackend()
      try other.write(new, to: "a")
      #expect(try backend.takeExternalChanges() == .unknown)
      extendLifetime(openedFolder)
    }
  #endif

  @Test(arguments: [EIO, ENOSPC, EROFS, EMFILE])
  func `If any call fails, a write either throws and leaves the old value, or is made`(code: CInt) throws {
    for failingCall in 1... {
      var reliableBackend = makeBackend()
      try reliableBackend.write(old, to: "a")
      let recorder = CallRecorder(failingCall: failingCall, code: code)
      var backend = makeBackend(recorder)
      let isMade: Bool
      do {
        try backend.write(new, to: "a")
        isMade = true
      } catch .writeFailed(let error) {
        #expect(error.code == code)
        isMade = false
      }
      #expect(try reliableBackend.read("a") == (isMade ? new : old), "\(recorder.lines)")
      #expect(try contents == ["a.value"], "\(recorder.lines)")
      if recorder.isFailurePending { break }
    }
  }

  @Test func `If any call fails, a first write either throws and stores nothing, or is made`() throws {
    for failingCall in 1... {
      let recorder = CallRecorder(failingCall: failingCall)
      var backend = makeBackend(recorder)
      var reliableBackend = makeBackend()
      do {
        try backend.write(new, to: "a")
        #expect(try reliableBackend.read("a") == new)
      } catch {
        #expect(try reliableBackend.read("a") == nil, "\(recorder.lines)")
        #expect(try reliableBackend.names() == [])
      }
      try reliableBackend.remove("a")
      if FileManager.default.fileExists(atPath: temporary.url.path(percentEncoded: false)) {
        #expect(try contents == [], "\(recorder.lines)")
        try FileManager.default.removeItem(at: temporary.url)
      }
      if recorder.isFailurePending { break }
    }
  }

  @Test func `If any call fails, a removal either throws and leaves the value, or is made`() throws {
    for failingCall in 1... {
      var reliableBackend = makeBackend()
      try reliableBackend.write(old, to: "a")
      let recorder = CallRecorder(failingCall: failingCall)
      var backend = makeBackend(recorder)
      do {
        try backend.remove("a")
        #expect(try reliableBackend.read("a") == nil, "\(recorder.lines)")
      } catch {
        #expect(try reliableBackend.read("a") == old, "\(recorder.lines)")
        #expect(try contents == ["a.value"], "\(recorder.lines)")
      }
      if recorder.isFailurePending { break }
    }
  }

  /// Returns a backend whose first synchronization of the folder fails, and whose later calls of the given operation
  /// fail too.
  private func makeBackend(failingToUndoBy operation: String) -> FileBackend {
    let hasFailed = Lock(false)
    return FileBackend(
      folder: temporary.url,
      fileSystem: FileSystem { [folderName] call in
        hasFailed.withLock { hasFailed in
          if hasFailed { return call.operation == operation ? EIO : nil }
          hasFailed = call.operation == "fsync" && call.path.hasSuffix("/\(folderName)")
          return hasFailed ? ENOSPC : nil
        }
      })
  }

  /// Returns the error of a change that can't be undone.
  private func unknownOutcomeError(of fileName: String) -> SystemError {
    let path = temporary.url.appending(path: fileName).path(percentEncoded: false)
    return SystemError(code: EIO, operation: "undoing the change", path: path)
  }

  @Test(arguments: ["create", "write", "fsync", "rename"])
  func `The error of a write that can't be undone says that its outcome is unknown`(operation: String) throws {
    var reliableBackend = makeBackend()
    try reliableBackend.write(old, to: "a")
    var backend = makeBackend(failingToUndoBy: operation)
    let error = unknownOutcomeError(of: "a.value")
    #expect(throws: StoreError.writeFailed(error)) { try backend.write(new, to: "a") }
    #expect(try reliableBackend.read("a") == new)
    #expect(
      StoreError.writeFailed(error).description == "The change may or may not have been made. undoing the change of "
        + "\(error.path) failed: Input/output error (errno 5). Load the stored value to see whether the commit was "
        + "made, then try again if necessary.")
  }

  @Test func `The error of a first write that can't be undone says that its outcome is unknown`() throws {
    var reliableBackend = makeBackend()
    try reliableBackend.write(old, to: "b")
    var backend = makeBackend(failingToUndoBy: "unlink")
    #expect(throws: StoreError.writeFailed(unknownOutcomeError(of: "a.value"))) { try backend.write(new, to: "a") }
    #expect(try reliableBackend.read("a") == new)
  }

  @Test func `The error of a removal that can't be undone says that its outcome is unknown`() throws {
    var reliableBackend = makeBackend()
    try reliableBackend.write(old, to: "a")
    // A removal renames the file first. Only the second rename, which undoes the first one, fails.
    var backend = makeBackend(failingToUndoBy: "rename")
    let error = unknownOutcomeError(of: "a.value")
    #expect(throws: StoreError.removeFailed(error)) { try backend.remove("a") }
    #expect(try reliableBackend.read("a") == nil)
    #expect(StoreError.removeFailed(error).description.hasPrefix("The change may or may not have been made. "))
  }

  @Test func `The error of a batch that can't be undone says that its outcome is unknown`() throws {
    var reliableBackend = makeBackend()
    for name in ["a", "b"] { try reliableBackend.write(old, to: name) }
    var backend = makeBackend(failingToUndoBy: "unlink")
    let writes = ["a", "b"].map { StoreWrite(name: $0, bytes: new) }
    let error = unknownOutcomeError(of: CommitJournal.fileName)
    #expect(throws: StoreError.writeFailed(error)) { try backend.commit(writes) { _ in .proceed(removing: []) } }
    // The journal is in force, so the next call finishes the batch.
    for name in ["a", "b"] { #expect(try reliableBackend.read(name) == new) }
  }

  @Test(arguments: [EIO, ENOSPC, EPERM, EISDIR])
  func `If any call fails, a batch either throws and leaves the old values, or is made`(code: CInt) throws {
    for failingCall in 1... {
      var reliableBackend = makeBackend()
      _ = try reliableBackend.commit(["a", "b"].map { StoreWrite(name: $0, bytes: old) }) { _ in
        .proceed(removing: ["c"])
      }
      try reliableBackend.write(old, to: "d")
      let recorder = CallRecorder(failingCall: failingCall, code: code)
      var backend = makeBackend(recorder)
      let writes = ["a", "b", "c"].map { StoreWrite(name: $0, bytes: new) }
      var thrown: StoreError?
      do throws(StoreError) {
        _ = try backend.commit(writes) { _ in .proceed(removing: ["d"]) }
      } catch {
        thrown = error
      }
      if let thrown, case .writeFailed(let error) = thrown { #expect(error.code == code) }
      let isMade = thrown == nil
      for name in ["a", "b"] { #expect(try reliableBackend.read(name) == (isMade ? new : old), "\(recorder.lines)") }
      #expect(try reliableBackend.read("c") == (isMade ? new : nil), "\(recorder.lines)")
      #expect(try reliableBackend.read("d") == (isMade ? nil : old), "\(recorder.lines)")
      #expect(reliableBackend.takeEvents() == [])
      // If the removal of a staged file failed, the next backend that opens the folder removes the file.
      var sweeper = makeBackend()
      _ = try sweeper.names()
      #expect(try contents.filter { !$0.hasSuffix(".value") } == [], "\(recorder.lines)")
      if recorder.isFailurePending { break }
    }
  }

  /// Refuses to replace or remove a file, as the system does for an immutable one.
  private final class Refusal: Sendable {
    private let suffix: Lock<String?>

    init(of fileName: String) {
      suffix = Lock("/\(fileName)")
    }

    /// Allows the file to be replaced and removed from now on.
    func end() {
      suffix.withLock { $0 = nil }
    }

    func refuses(_ call: FileSystem.Call) -> Bool {
      guard call.operation == "rename" || call.operation == "unlink" else { return false }
      return suffix.withLock { $0.map(call.path.hasSuffix) ?? false }
    }
  }

  @Test(arguments: [["b", "a"], ["b"], [], ["b+0123456789abcdef", "b", "a"]])
  func `A batch throws and changes nothing if the system refuses the change of its first value`(
    written: [String]
  ) throws {
    // The name with a plus sign is that of a part, which doesn't count as a value.
    let removed = ["b", "a"].filter { !written.contains($0) }
    var reliableBackend = makeBackend()
    for name in ["a", "b"] { try reliableBackend.write(old, to: name) }
    let refusal = Refusal(of: "b.value")
    let lines = Lock<[String]>([])
    let fileSystem = FileSystem { call in
      let name = URL(filePath: call.path).lastPathComponent
      let isStaged = name.hasPrefix(".DataStore-") && name != ".DataStore-journal"
      lines.withLock { $0.append("\(call.operation) \(isStaged ? "temporary" : name)") }
      return refusal.refuses(call) ? EPERM : nil
    }
    var backend = FileBackend(folder: temporary.url, fileSystem: fileSystem)
    func commit() throws -> Bool {
      try backend.commit(written.map { StoreWrite(name: $0, bytes: new) }) { _ in .proceed(removing: removed) }
    }
    let operation = written.isEmpty ? "unlink" : "rename"
    let error = SystemError(
      code: EPERM, operation: operation, path: temporary.url.appending(path: "b.value").path(percentEncoded: false))
    #expect(throws: written.isEmpty ? StoreError.removeFailed(error) : .writeFailed(error)) { try commit() }
    // The removal of the journal is durable before the staged files are removed. So the failed commit isn't made after
    // a loss of power.
    let lastLines = ["unlink .DataStore-journal", "fsync \(folderName)"] + written.map { _ in "unlink temporary" }
    #expect(lines.withLock { $0.suffix(lastLines.count) } == lastLines[...])
    for name in ["a", "b"] {
      #expect(try backend.read(name) == old)
      #expect(try reliableBackend.read(name) == old)
    }
    #expect(try contents.sorted() == ["a.value", "b.value"])
    #expect(backend.takeEvents() == [])
    refusal.end()
    #expect(try commit())
    for name in ["a", "b"] { #expect(try reliableBackend.read(name) == (removed.contains(name) ? nil : new)) }
  }

  @Test(arguments: [".DataStore-journal", "b+0123456789abcdef.value"])
  func `A refused batch that can't be rolled back counts as made, and is finished later`(
    rollbackFailsAt fileName: String
  ) throws {
    var reliableBackend = makeBackend()
    for name in ["a", "b"] { try reliableBackend.write(old, to: name) }
    let refusal = Refusal(of: "b.value")
    let hasRefused = Lock(false)
    let fileSystem = FileSystem { call in
      if refusal.refuses(call) {
        hasRefused.withLock { $0 = true }
        return EPERM
      }
      // The rollback fails because it can't remove the journal, or because it can't rename the part to the name of its
      // staged file. The test doesn't know that name, so every later rename fails.
      let isRollback = fileName.hasPrefix(".") ? call.path.hasSuffix(fileName) : call.operation == "rename"
      return hasRefused.withLock { $0 } && isRollback ? EIO : nil
    }
    var backend = FileBackend(folder: temporary.url, fileSystem: fileSystem)
    let writes = ["b+0123456789abcdef", "b", "a"].map { StoreWrite(name: $0, bytes: new) }
    #expect(try backend.commit(writes) { _ in .proceed(removing: []) })
    #expect(throws: StoreError.self) { try backend.read("a") }
    for name in writes.map(\.name) { #expect(try reliableBackend.read(name) == new) }
    #expect(reliableBackend.takeEvents() == [])
    #expect(try contents.filter { !$0.hasSuffix(".value") } == [])
  }

  @Test(arguments: [["a", "b"], ["a"]])
  func `A batch that stopped halfway at a file that can't be changed is finished once the file can be changed`(
    written: [String]
  ) throws {
    let removed = ["a", "b"].filter { !written.contains($0) }
    var reliableBackend = makeBackend()
    for name in ["a", "b"] { try reliableBackend.write(old, to: name) }
    let refusal = Refusal(of: "b.value")
    let fileSystem = FileSystem { refusal.refuses($0) ? EPERM : nil }
    var backend = FileBackend(folder: temporary.url, fileSystem: fileSystem)
    let isMade = try backend.commit(written.map { StoreWrite(name: $0, bytes: new) }) { _ in
      .proceed(removing: removed)
    }
    #expect(isMade)
    let error = SystemError(
      code: EPERM, operation: removed.isEmpty ? "rename" : "unlink",
      path: temporary.url.appending(path: "b.value").path(percentEncoded: false))
    // Each call tries to finish the batch, and fails. The second backend simulates another process.
    for _ in 1...2 {
      for name in ["a", "b", "c"] { #expect(throws: StoreError.readFailed(error)) { try backend.read(name) } }
      #expect(throws: StoreError.readFailed(error)) { try backend.names() }
      #expect(throws: StoreError.writeFailed(error)) { try backend.write(old, to: "c") }
      #expect(throws: StoreError.writeFailed(error)) { try backend.quarantine(new, of: "a", at: Date()) }
      #expect(backend.takeEvents() == [])
      backend = FileBackend(folder: temporary.url, fileSystem: fileSystem)
    }
    refusal.end()
    for name in ["a", "b"] { #expect(try backend.read(name) == (removed.contains(name) ? nil : new)) }
    try backend.write(new, to: "c")
    #expect(backend.takeEvents() == [])
    #expect(try contents.sorted() == (written + ["c"]).map { "\($0).value" })
  }

  @Test func `If any call fails, a quarantine either throws and leaves the value, or is made`() throws {
    for failingCall in 1... {
      var reliableBackend = makeBackend()
      try reliableBackend.write(old, to: "a")
      let recorder = CallRecorder(failingCall: failingCall)
      var backend = makeBackend(recorder)
      do {
        let quarantinePath = try #require(try backend.quarantine(old, of: "a", at: Date()))
        #expect(try reliableBackend.read("a") == nil, "\(recorder.lines)")
        #expect(try Data(contentsOf: URL(filePath: quarantinePath)) == old)
        try FileManager.default.removeItem(atPath: quarantinePath)
      } catch {
        #expect(try reliableBackend.read("a") == old, "\(recorder.lines)")
        #expect(try contents == ["a.value"], "\(recorder.lines)")
      }
      if recorder.isFailurePending { break }
    }
  }

  @Test func `If any call fails, a read either throws or returns the stored value`() throws {
    var reliableBackend = makeBackend()
    try reliableBackend.write(old, to: "a")
    for failingCall in 1... {
      let recorder = CallRecorder(failingCall: failingCall)
      var backend = makeBackend(recorder)
      do {
        #expect(try backend.read("a") == old)
        #expect(try backend.names() == ["a"])
      } catch {
        guard case .readFailed = error else {
          Issue.record("\(error)")
          return
        }
      }
      if recorder.isFailurePending { break }
    }
  }

  @Test func `If an erasure can't read the bytes that it needs, it throws and erases nothing`() throws {
    var reliableBackend = makeBackend()
    for name in ["a", "b"] { try reliableBackend.write(old, to: name) }
    var failingBackend = FileBackend(
      folder: temporary.url,
      fileSystem: FileSystem(fault: { $0.operation == "read" && $0.path.hasSuffix("b.value") ? EIO : nil }))
    let error = #expect(throws: StoreError.self) { try failingBackend.erase { $0.bytes == self.old } }
    if case .eraseFailed(let error) = error { #expect(error.code == EIO) } else { Issue.record("\(error as Any)") }
    #expect(try reliableBackend.read("a") == old)
    // An erasure that doesn't need the bytes succeeds.
    try failingBackend.erase { $0.key?.collection == "b" }
    #expect(try contents == ["a.value"])
  }

  @Test func `An erasure that can't remove the bytes throws, however often it is repeated`() throws {
    var reliableBackend = makeBackend()
    for name in ["a", "b"] { try reliableBackend.write(old, to: name) }
    let fileSystem = FileSystem(fault: { $0.operation == "unlink" ? EIO : nil })
    var failingBackend = FileBackend(folder: temporary.url, fileSystem: fileSystem)
    for _ in 1...2 {
      #expect(throws: StoreError.self) { try failingBackend.erase { $0.bytes == self.old } }
      #expect(Set(try contents) == ["a.value", "b.value"])
    }
    try reliableBackend.erase { $0.bytes == self.old }
    #expect(try contents == [])
  }

  @Test func `After an erasure that fails at any call, the next one is durable and leaves no bytes`() throws {
    for failingCall in 1... {
      var reliableBackend = makeBackend()
      for name in ["a", "b"] { try reliableBackend.write(old, to: name) }
      let failingRecorder = CallRecorder(failingCall: failingCall)
      var failingBackend = makeBackend(failingRecorder)
      do {
        try failingBackend.erase { $0.bytes == self.old }
        if failingRecorder.isFailurePending { break }
      } catch {
        guard case .eraseFailed = error else {
          Issue.record("\(error)")
          return
        }
      }
      let recorder = CallRecorder()
      var nextBackend = makeBackend(recorder)
      try nextBackend.erase { $0.bytes == self.old }
      #expect(try contents == [])
      #expect(recorder.lines.last { !$0.hasPrefix("close") && !$0.hasPrefix("flock") } == "fsync \(folderName)")
    }
  }

  @Test(arguments: [true, false])
  func `An erasure keeps folders named like store files, and files with only similar names`(selectsAll: Bool) throws {
    var backend = makeBackend()
    try backend.write(old, to: "a")
    try backend.write(old, to: "c")
    let quarantinePath = try #require(try backend.quarantine(old, of: "c", at: Date(timeIntervalSinceReferenceDate: 0)))
    #expect(quarantinePath.hasSuffix("/c.corrupt-20010101T000000.000Z"))
    for name in ["b.value", "d.corrupt-20010101T000000.000Z"] {
      try FileManager.default.createDirectory(
        at: temporary.url.appending(path: name), withIntermediateDirectories: false)
    }
    try old.write(to: temporary.url.appending(path: "c.corrupt-notes"))
    // The second erasure finds only what the first one keeps.
    for _ in 1...2 { try backend.erase { selectsAll || $0.bytes == self.old } }
    #expect(Set(try contents) == ["b.value", "c.corrupt-notes", "d.corrupt-20010101T000000.000Z"])
  }

  @Test func `A call that a signal interrupts is retried`() throws {
    for failingCall in 1... {
      let recorder = CallRecorder(failingCall: failingCall, code: EINTR)
      var backend = makeBackend(recorder)
      try backend.write(new, to: "a")
      #expect(try backend.read("a") == new)
      try backend.remove("a")
      if recorder.isFailurePending { break }
    }
  }

  @Test func `Bytes that the system accepts in pieces are all written`() throws {
    let bytes = Data((0..<1_000).map { UInt8(truncatingIfNeeded: $0) })
    var backend = FileBackend(folder: temporary.url, fileSystem: FileSystem(maximumWriteSize: 7))
    try backend.write(bytes, to: "a")
    #expect(try backend.read("a") == bytes)
  }

  @Test func `Empty bytes are a stored value`() throws {
    var backend = makeBackend()
    try backend.write(Data(), to: "a")
    #expect(try backend.read("a") == Data())
  }
}
