import DataStore
import Foundation
import Testing

@Suite struct UserDefaultsStoreTests {
  private let key = StoreKey<String>("text", id: "0")

  @Test func `Only keys with the store's prefix are touched`() async throws {
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let defaults = UserDefaults(suiteName: suiteName)!
    defaults.set("foreign", forKey: "text.0")
    let store = UserDefaultsStore(suiteName: suiteName)
    try await store.save("a", for: key)
    let keys = { Set((UserDefaults.standard.persistentDomain(forName: suiteName) ?? [:]).keys) }
    #expect(keys() == ["text.0", "DataStore.text.0"])
    let observation = try await store.observe(collection: "text", as: String.self)
    #expect(observation.stored.map(\.key) == [key])
    try await store.remove(key)
    #expect(keys() == ["text.0"])
    #expect(defaults.string(forKey: "text.0") == "foreign")
  }

  @Test func `Undecodable bytes are kept under another key`() async throws {
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let spoiled = Data([0xFF, 0x00])
    let defaults = UserDefaults(suiteName: suiteName)!
    defaults.set(spoiled, forKey: "DataStore.text.0")
    let store = UserDefaultsStore(suiteName: suiteName) { Date(timeIntervalSince1970: 1_605_521_360) }
    let error = await #expect(throws: StoreError.self) { try await store.load(key) }
    guard case .undecodable(key.keyName, "DataStore.text.0.corrupt-20201116T100920.000Z", _) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(defaults.data(forKey: "DataStore.text.0.corrupt-20201116T100920.000Z") == spoiled)
    #expect(defaults.data(forKey: "DataStore.text.0") == nil)
  }

  @Test(arguments: ["load", "save", "remove"])
  func `What is no bytes at all is kept under another key too`(call: String) async throws {
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let defaults = UserDefaults(suiteName: suiteName)!
    defaults.set(["not", "bytes"], forKey: "DataStore.text.0")
    let store = UserDefaultsStore(suiteName: suiteName) { Date(timeIntervalSince1970: 1_605_521_360) }
    switch call {
    case "save": try await store.save("a", for: key)
    case "remove": try await store.remove(key)
    default: await #expect(throws: StoreError.self) { try await store.load(key) }
    }
    #expect(
      defaults.stringArray(forKey: "DataStore.text.0.corrupt-20201116T100920.000Z") == ["not", "bytes"])
    #expect(try await store.load(key)?.value == (call == "save" ? "a" : nil))
    #expect(await store.events.first { _ in true } != nil)
  }

  @Test(arguments: ["", "../outside", "a/b"])
  func `A suite that cannot be throws from every call`(suiteName: String) async throws {
    let store = UserDefaultsStore(suiteName: suiteName)
    await #expect(throws: StoreError.self) { try await store.load(key) }
    await #expect(throws: StoreError.self) { try await store.save("a", for: key) }
    await #expect(throws: StoreError.self) { try await store.remove(key) }
    await #expect(throws: StoreError.self) { try await store.changes(of: key) }
    await #expect(throws: StoreError.self) { try await store.observe(collection: "text", as: String.self) }
  }
}
