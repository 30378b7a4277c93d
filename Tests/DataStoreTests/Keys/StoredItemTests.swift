import Foundation
import Testing

@testable import DataStore

@Suite struct StoredItemTests {
  /// The last key has an id that looks like the end of a quarantined name.
  @Test(arguments: [
    StoreKeyName("note"), StoreKeyName("note", id: "a"), StoreKeyName("note", id: "corrupt-x"),
    StoreKeyName("note", id: "corrupt-20260102T030405.678Z"),
  ])
  func `A value, its parts and its quarantined bytes have the key of the value`(key: StoreKeyName) throws {
    let name = try key.encoded()
    let partName = StorePartName.encode("0123456789abcdef", of: name)
    for storedName in [name, partName] {
      #expect(StoredItem(name: storedName) { Data() }.key == key)
      for attempt in [1, 2] {
        let quarantineName = InMemoryBackend.quarantineName(for: storedName, at: .now, attempt: attempt)
        #expect(StoredItem(name: quarantineName) { Data() }.key == key)
        // A commit quarantines values only.
        #expect(QuarantineName(quarantineName)?.encodedKey == (storedName == name ? name : nil))
      }
      #expect(QuarantineName(storedName) == nil)
      #expect(QuarantineName(.uniqueQuarantineName(for: name, at: .now))?.encodedKey == name)
    }
  }
}
