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

@Suite struct FileStoreTests {
  private let temporary = TemporaryFolder()
  private let key = StoreKey<String>("text", id: "0")

  private var folder: URL { temporary.url }

  private func file(_ name: String) -> URL { folder.appending(path: name) }

  private func contents(of folder: URL) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false)).sorted()
  }

  private func permissions(of url: URL) throws -> mode_t {
    var status = stat()
    try #require(lstat(url.path(percentEncoded: false), &status) == 0)
    return status.st_mode & 0o777
  }

  private func makeFolder() throws {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  @Test func `Each stored key has one file, and there are no other files`() async throws {
    let store = FileStore(folder: folder)
    try await store.save("a", for: key)
    try await store.save("b", for: key)
    try await store.save("c", for: StoreKey("text"))
    #expect(try contents(of: folder) == ["text.0.value", "text.value"])
    try await store.remove(key)
    #expect(try contents(of: folder) == ["text.value"])
  }

  @Test func `Only the owner can access files and folders`() async throws {
    let inner = folder.appending(path: "outer/inner", directoryHint: .isDirectory)
    try await FileStore(folder: inner).save("a", for: key)
    #expect(try permissions(of: folder) == 0o700)
    #expect(try permissions(of: folder.appending(path: "outer")) == 0o700)
    #expect(try permissions(of: inner) == 0o700)
    #expect(try permissions(of: inner.appending(path: "text.0.value")) == 0o600)
  }

  @Test func `Reading and removing create no folder`() async throws {
    let store = FileStore(folder: folder)
    #expect(try await store.load(key) == nil)
    try await store.remove(key)
    #expect(try await store.observe(collection: "text", as: String.self).stored.isEmpty)
    #expect(!FileManager.default.fileExists(atPath: folder.path(percentEncoded: false)))
  }

  @Test func `No key causes a write outside the folder`() async throws {
    let inner = folder.appending(path: "inner", directoryHint: .isDirectory)
    let store = FileStore(folder: inner)
    let names = ["../x", "..", "/", "/tmp/x", "a/../../x", "x\u{0}/../y", "."]
    for name in names {
      try await store.save("a", for: StoreKey(name))
      try await store.save("a", for: StoreKey("a", id: name))
    }
    #expect(try contents(of: folder) == ["inner"])
    #expect(try contents(of: inner).count == 2 * names.count)
  }

  @Test func `Corrupt bytes are quarantined in the folder, under a name that no other file has`() async throws {
    try makeFolder()
    let corruptBytes = Data([0xFF, 0x00])
    try corruptBytes.write(to: file("text.0.value"))
    try Data("in the way".utf8).write(to: file("text.0.corrupt-20201116T100920.000Z"))
    let store = FileStore(folder: folder) { Date(timeIntervalSince1970: 1_605_521_360) }
    let error = await #expect(throws: StoreError.self) { try await store.load(key) }
    guard case .undecodable(key.keyName, let quarantinePath?, _) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(quarantinePath == file("text.0.corrupt-20201116T100920.000Z-2").path(percentEncoded: false))
    #expect(try Data(contentsOf: URL(filePath: quarantinePath)) == corruptBytes)
    #expect(try String(contentsOf: file("text.0.corrupt-20201116T100920.000Z"), encoding: .utf8) == "in the way")
    #expect(try contents(of: folder).count == 2)
  }

  @Test func `A file of a future format is left unchanged`() async throws {
    try makeFolder()
    let futureBytes = Data("{\"checksum\":\"552a7410\",\"format\":4}\n\u{0}".utf8)
    try futureBytes.write(to: file("text.0.value"))
    let store = FileStore(folder: folder)
    let error = StoreError.newerFormat(
      key.keyName, found: StoredVersion(format: 4, schema: 1), supported: StoredVersion(format: 3, schema: 1))
    await #expect(throws: error) { try await store.load(key) }
    await #expect(throws: error) { try await store.save("a", for: key) }
    await #expect(throws: error) { try await store.remove(key) }
    #expect(try Data(contentsOf: file("text.0.value")) == futureBytes)
    #expect(try contents(of: folder) == ["text.0.value"])
  }

  @Test func `Files that aren't the store's are left unchanged`() async throws {
    try makeFolder()
    let foreign = ["README", "Text.value", "a b.value", ".hidden", "text.0.value.bak", "text.corrupt-1", "a.b.c.value"]
    for name in foreign { try Data(name.utf8).write(to: file(name)) }
    let store = FileStore(folder: folder)
    try await store.save("a", for: key)
    let observation = try await store.observe(collection: "text", as: String.self)
    #expect(observation.stored.map(\.key) == [key])
    for name in foreign { #expect(try String(contentsOf: file(name), encoding: .utf8) == name) }
    #expect(try contents(of: folder) == (foreign + ["text.0.value"]).sorted())
  }

  @Test func `The first call removes unlocked staged files, and no other files`() async throws {
    try makeFolder()
    for name in [".DataStore-0a1b-1", ".DataStore-1", ".DataStore-0a1b-2"] {
      try Data("half".utf8).write(to: file(name))
    }
    let lockedFile = try FileSystem().openFile(
      ".DataStore-0a1b-2", in: FileSystem().openFolder(folder.path(percentEncoded: false)))!
    #expect(try FileSystem().tryToLock(lockedFile) == true)
    #expect(try await FileStore(folder: folder).load(key) == nil)
    // The name `.DataStore-1` isn't that of a staged file.
    #expect(try contents(of: folder) == [".DataStore-0a1b-2", ".DataStore-1"])
    extendLifetime(lockedFile)
  }

  @Test func `If the folder is locked when the store opens it, the first commit removes the unlocked staged files`()
    async throws
  {
    try makeFolder()
    try Data("half".utf8).write(to: file(".DataStore-0a1b-1"))
    let flockCount = Lock(0)
    // Of the calls of `flock`, the first is made when the folder is opened, the second locks the commit's staged file,
    // and the third locks the folder for the commit.
    let fileSystem = FileSystem(fault: { call in
      guard call.operation == "flock" else { return nil }
      return flockCount.withLock { count in
        count += 1
        return count == 1 ? EWOULDBLOCK : nil
      }
    })
    let store = FileStore(folder: folder, fileSystem: fileSystem)
    try await store.save("a", for: key)
    #expect(try contents(of: folder) == ["text.0.value"])
  }

  /// An item that has the name of a value's file but can't be read as one.
  enum Obstacle: CaseIterable {
    case folder, symbolicLink, sparseFile, pipe
  }

  @Test(arguments: Obstacle.allCases)
  func `An observation omits an unreadable entry and contains all others`(
    obstacle: Obstacle
  ) async throws {
    let good = try await FileStore(folder: folder).save("good", for: StoreKey<String>("text", id: "1"))
    try make(obstacle, at: file("text.0.value"))
    let store = FileStore(folder: folder)
    let observation = try await store.observe(collection: "text", as: String.self)
    #expect(observation.stored.map(\.key.id) == ["1"])
    #expect(observation.stored.first?.stored.tag == good.tag)
    var events = store.events.makeAsyncIterator()
    guard case .valueUnreadable(key.keyName, .readFailed(let error)) = await events.next() else {
      Issue.record("no event about an unreadable value")
      return
    }
    #expect(error.path == file("text.0.value").path(percentEncoded: false))
    // A call for the key itself fails.
    await #expect(throws: StoreError.readFailed(error)) { try await store.load(key) }

    var changes = observation.changes.makeAsyncIterator()
    try FileManager.default.removeItem(at: file("text.0.value"))
    let saved = try await FileStore(folder: folder).save("repaired", for: key)
    #expect(await changes.next()?.map(\.stored?.tag) == [saved.tag])
  }

  @Test func `An entry that becomes unreadable is reported, and is sent when it is readable again`() async throws {
    let store = FileStore(folder: folder)
    try await store.save("good", for: key)
    var events = store.events.makeAsyncIterator()
    var changes = try await store.observe(collection: "text", as: String.self).changes.makeAsyncIterator()
    let elsewhere = file("elsewhere")
    try FileManager.default.moveItem(at: file("text.0.value"), to: elsewhere)
    #expect(await changes.next()?.map(\.stored?.value) == [nil])
    // The obstacle is moved into place, because a watch on Linux doesn't notice the creation of a folder.
    try make(.folder, at: file("obstacle"))
    try FileManager.default.moveItem(at: file("obstacle"), to: file("text.0.value"))
    guard case .valueUnreadable(key.keyName, _) = await events.next() else {
      Issue.record("no event about an unreadable value")
      return
    }
    // The check that this save causes also reads the unreadable entry again, but sends only the other one.
    try await FileStore(folder: folder).save("another", for: StoreKey("text", id: "1"))
    #expect(await changes.next()?.map(\.key.id) == ["1"])
    try FileManager.default.removeItem(at: file("text.0.value"))
    try FileManager.default.moveItem(at: elsewhere, to: file("text.0.value"))
    #expect(await changes.next()?.map(\.stored?.value) == ["good"])
  }

  private func make(_ obstacle: Obstacle, at url: URL) throws {
    let path = url.path(percentEncoded: false)
    switch obstacle {
    case .folder: try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
    case .symbolicLink:
      try Data("outside".utf8).write(to: file("outside"))
      try FileManager.default.createSymbolicLink(at: url, withDestinationURL: file("outside"))
    case .sparseFile:
      try Data().write(to: url)
      #expect(truncate(path, 2 << 30) == 0)
    case .pipe: #expect(mkfifo(path, 0o600) == 0)
    }
  }

  @Test func `A symbolic link is followed neither for reading nor for writing`() async throws {
    try makeFolder()
    let inner = folder.appending(path: "inner", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
    try Data("secret".utf8).write(to: file("outside"))
    try FileManager.default.createSymbolicLink(
      at: inner.appending(path: "text.0.value"), withDestinationURL: file("outside"))
    let store = FileStore(folder: inner)
    let error = SystemError(
      code: ELOOP, operation: "open", path: inner.appending(path: "text.0.value").path(percentEncoded: false))
    await #expect(throws: StoreError.readFailed(error)) { try await store.load(key) }
    await #expect(throws: StoreError.writeFailed(error)) { try await store.save("a", for: key) }
    #expect(try String(contentsOf: file("outside"), encoding: .utf8) == "secret")
  }

  @Test func `Reading a named pipe or a folder in place of a value's file throws and doesn't block`() async throws {
    try makeFolder()
    #expect(mkfifo(file("text.0.value").path(percentEncoded: false), 0o600) == 0)
    try FileManager.default.createDirectory(at: file("text.1.value"), withIntermediateDirectories: false)
    let store = FileStore(folder: folder)
    for id in ["0", "1"] {
      let path = file("text.\(id).value").path(percentEncoded: false)
      await #expect(throws: StoreError.readFailed(SystemError(code: EINVAL, operation: "open", path: path))) {
        try await store.load(StoreKey<String>("text", id: id))
      }
    }
  }

  @Test func `Saving throws while the folder can't be created, and succeeds once it can`() async throws {
    try makeFolder()
    try Data().write(to: file("file"))
    let store = FileStore(folder: file("file/inner"))
    let path = file("file/inner").path(percentEncoded: false)
    await #expect(throws: StoreError.writeFailed(SystemError(code: ENOTDIR, operation: "open", path: path))) {
      try await store.save("a", for: key)
    }
    try FileManager.default.removeItem(at: file("file"))
    let saved = try await store.save("a", for: key)
    #expect(try await store.load(key) == saved)
  }

  @Test func `Calls throw after the folder was removed, don't create it again, and succeed once it is restored`()
    async throws
  {
    let store = FileStore(folder: folder)
    let saved = try await store.save("a", for: key)
    let elsewhere = TemporaryFolder()
    try FileManager.default.moveItem(at: folder, to: elsewhere.url)
    let pathWithoutSlash = String(folder.path(percentEncoded: false).dropLast())
    let error = SystemError(code: ENOENT, operation: "open", path: pathWithoutSlash)
    await #expect(throws: StoreError.readFailed(error)) { try await store.load(key) }
    await #expect(throws: StoreError.writeFailed(error)) { try await store.save("b", for: key) }
    await #expect(throws: StoreError.removeFailed(error)) { try await store.remove(key) }
    #expect(!FileManager.default.fileExists(atPath: pathWithoutSlash))
    try FileManager.default.moveItem(at: elsewhere.url, to: folder)
    #expect(try await store.load(key) == saved)
    extendLifetime(elsewhere)
  }

  @Test(arguments: [URL(string: "https://example.com/a")!, URL(string: "file:///tmp/a%00b")!])
  func `Calls throw if the URL can't be that of a folder`(url: URL) async throws {
    let error = await #expect(throws: StoreError.self) { try await FileStore(folder: url).save("a", for: key) }
    guard case .writeFailed(let systemError) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(systemError.code == EINVAL)
    let store = FileStore(folder: url)
    await #expect(throws: StoreError.readFailed(systemError)) { try await store.changes(of: key) }
    var events = store.events.makeAsyncIterator()
    #expect(await events.next() == .watchingFailed(.readFailed(systemError)))
  }

  #if os(Linux)
    @Test func `Saving throws on a volume on which no folder can be created`() async throws {
      let error = await #expect(throws: StoreError.self) {
        try await FileStore(folder: URL(filePath: "/proc/self/nothing")).save("a", for: key)
      }
      guard case .writeFailed(let systemError) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(systemError.operation == "mkdir")
    }
  #endif

  @Test func `A relative URL is resolved against its base`() async throws {
    let store = FileStore(folder: URL(filePath: "inner", relativeTo: folder))
    try await store.save("a", for: key)
    #expect(try contents(of: folder) == ["inner"])
  }
}
