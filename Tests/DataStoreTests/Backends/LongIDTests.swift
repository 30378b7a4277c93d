import Foundation
import TestSupport
import Testing

@testable import DataStore

/// Ids that are too long for a file name.
@Suite(.timeLimit(.minutes(15))) struct LongIDTests {
  private let temporary = TemporaryFolder()
  private let longID = "https://example.com/" + String(repeating: "名", count: 500)

  private var store: FileStore { FileStore(folder: temporary.url) }

  private var fileNames: [String] {
    get throws {
      try FileManager.default.contentsOfDirectory(atPath: temporary.url.path(percentEncoded: false)).sorted()
    }
  }

  @Test func `The file of a long id has a name of limited length, and that of a short one its old name`() async throws {
    try await store.save("long", for: StoreKey("page", id: longID))
    try await store.save("short", for: StoreKey("page", id: "Jake/0"))
    let names = try fileNames
    #expect(names == ["page.%4aake%2f0.value", "\(try StoreKeyName("page", id: longID).encoded()).value"])
    #expect(names.allSatisfy { $0.utf8.count <= 206 })
  }

  @Test func `The event about corrupt bytes has the long id while the header still has it`() async throws {
    let key = StoreKey<String>("page", id: longID)
    try await store.save("value", for: key)
    let file = temporary.url.appending(path: "\(try key.keyName.encoded()).value")
    var bytes = try Data(contentsOf: file)
    bytes[bytes.count - 2] ^= 1
    try bytes.write(to: file)
    let observed = store
    #expect(try await observed.observe(collection: "page", as: String.self).stored.isEmpty)
    let event = await observed.events.first(1)
    guard case .valueQuarantined(key.keyName, let movedTo, _) = event.first else {
      Issue.record("\(event)")
      return
    }
    #expect(try Data(contentsOf: URL(filePath: movedTo)) == bytes)
  }

  @Test func `Bytes that have lost their id are quarantined, named by their digest, and can be erased`() async throws {
    let key = StoreKey<String>("page", id: longID)
    try await store.save("value", for: key)
    let name = try key.keyName.encoded()
    try Data("corrupt".utf8).write(to: temporary.url.appending(path: "\(name).value"))
    let observed = store
    #expect(try await observed.observe(collection: "page", as: String.self).stored.isEmpty)
    let placeholder = StoreKeyName("page", id: String(name.dropFirst("page.".count)))
    guard case .valueQuarantined(placeholder, _, _) = await observed.events.first(1).first else {
      Issue.record("The event has another key.")
      return
    }
    try await observed.erase { $0.key == placeholder }
    #expect(try fileNames == [])
  }

  @Test func `An erasure finds quarantined bytes by the long id that they contain`() async throws {
    let key = StoreKey<String>("page", id: longID)
    try await store.save("value", for: key)
    let file = temporary.url.appending(path: "\(try key.keyName.encoded()).value")
    var bytes = try Data(contentsOf: file)
    bytes[bytes.count - 2] ^= 1
    try bytes.write(to: file)
    _ = try await store.observe(collection: "page", as: String.self)
    #expect(try fileNames.count == 1)
    try await store.erase { $0.key == key.keyName }
    #expect(try fileNames == [])
  }

  @Test func `The value of another id under the name of a long one is quarantined, not returned`() async throws {
    let (key, otherKey) = (StoreKey<String>("page", id: longID), StoreKey<String>("page", id: longID + "0"))
    try await store.save("value", for: key)
    try FileManager.default.moveItem(
      at: temporary.url.appending(path: "\(try key.keyName.encoded()).value"),
      to: temporary.url.appending(path: "\(try otherKey.keyName.encoded()).value"))
    await #expect {
      try await store.load(otherKey)
    } throws: { error in
      if case .undecodable(otherKey.keyName, _, _) = error as? StoreError { true } else { false }
    }
    #expect(try await store.load(key) == nil)
  }

  @Test func `A value of a future format with a long id is left untouched`() async throws {
    let key = StoreKey<String>("page", id: longID)
    try await store.save("value", for: key)
    let file = temporary.url.appending(path: "\(try key.keyName.encoded()).value")
    let line = #","format":99,"id":"\#(try #require(key.keyName.longID(besides: key.keyName.encoded())))"}"#
    let checksum = CRC32C.checksum(of: Data(line.utf8)).hexadecimalDigits
    let bytes = Data(#"{"checksum":"\#(checksum)"\#(line)"#.utf8)
    try bytes.write(to: file)
    let observed = store
    #expect(try await observed.observe(collection: "page", as: String.self).stored.isEmpty)
    guard case .newerValueLeftUntouched(key.keyName, _, _) = await observed.events.first(1).first else {
      Issue.record("The event has another key.")
      return
    }
    #expect(try Data(contentsOf: file) == bytes)
  }
}
