internal import DataStore
internal import Foundation
internal import Multicast

extension StoreConformance {
  /// The rules about erasure.
  static let erasureChecks = [
    Check("Erased values are removed for all observers, and all other values stay", needsErasure: true) { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      let (keptKey, unrelatedKey) = (Key("note", id: "Mary"), Key("other", id: "Jake"))
      let first = try await store.save(Note("first"), for: key)
      let second = try await store.save(Note("second"), for: keptKey)
      try await store.save(Note("third"), for: unrelatedKey)
      let keyChanges = try await store.changes(of: key).subscribe()
      let collectionChanges = try await store.observe(collection: key.collection, as: Note.self).changes
      // The other store reads the value before it is erased.
      _ = try await other.load(key)
      let seenItems = ItemRecorder()
      try await store.erase { item in
        seenItems.add(item)
        return item.key == key.keyName
      }
      try expect(seenItems.keys, is: [key.keyName, keptKey.keyName, unrelatedKey.keyName], "the keys of the items")
      try expect(
        seenItems.text(of: key.keyName).contains("first"), is: true, "whether the item has the bytes of the value")
      // The revisions of the two other saves come between.
      let removal = Change.removed(key, revision: first.revision + 3)
      try expect(await read(2, from: keyChanges, on: harness), is: [.saved(key, first), removal], "the changes")
      try expect(await read(1, from: collectionChanges, on: harness), is: [[removal]], "the changes of the collection")
      for store in [store, other, try await harness.open()] {
        try expect(await store.load(key), is: nil, "load of an erased key")
        try expect(await store.load(keptKey)?.value, is: second.value, "load of another key")
        try expect(await store.load(unrelatedKey)?.value, is: Note("third"), "load of another collection")
      }
      let later = try await store.save(Note("later"), for: key)
      try expect(await harness.open().load(key)?.value, is: later.value, "load after a save")
    },
    Check("An erasure that matches no item changes nothing", needsErasure: true) { harness in
      try await harness.open().erase { _ in true }
      let store = try await harness.open()
      try await store.save(Note("saved"), for: key)
      try await store.erase { _ in false }
      try expect(await store.load(key)?.value, is: Note("saved"), "load")
    },
    Check(
      "No byte remains of erased values, partitioned or not, or of values replaced or removed before",
      needsErasure: true
    ) { harness in
      try await changeSecretValues(on: harness)
      try await harness.open().erase { $0.key?.id?.contains("secret") ?? false }
      try expect(await harness.open().load(key)?.value, is: Note("public"), "load of another key")
      try await expectNoSecret(in: harness)
    },
    Check("An erasure of a value in parts with an id of 4096 bytes leaves a similar one", needsErasure: true) {
      harness in
      let (erased, kept) = (
        StoreKey<Album>("album", id: longestID), StoreKey<Album>("album", id: longestID.uppercased())
      )
      for key in [erased, kept] { try await harness.open().save(Album.versions[1], for: key) }
      try await harness.open().erase { $0.key == erased.keyName }
      try expect(await harness.open().load(erased), is: nil, "load after the erasure")
      try expect(await harness.open().load(kept)?.value, is: Album.versions[1], "load of another key")
    },
    Check("No byte remains of erased values of a future schema", needsErasure: true) { harness in
      let id = "the secret letter"
      try await harness.open().save(FutureNote(text: "secret"), for: StoreKey("note", id: id))
      try await harness.open().save(Note("public"), for: key)
      let store = try await harness.open()
      // The observation finds the value of the future schema.
      _ = try await store.observe(collection: key.collection, as: Note.self)
      try await store.erase { $0.key?.id == id }
      try expect(await store.load(key)?.value, is: Note("public"), "load of another key")
      try expect(await store.load(Key("note", id: id)), is: nil, "load of the erased key")
      try await expectNoSecret(in: harness)
    },
    Check(
      "No byte remains of erased quarantined values, and the replay of events is cleared", needsCorruption: true,
      needsErasure: true
    ) { harness in
      let secretKey = Key("note", id: "the secret one")
      let store = try await harness.open()
      // `key`, which isn't erased, comes first. A replay that isn't cleared then begins with the event about `key`.
      for key in [key, secretKey] {
        try await store.save(Note("text"), for: key)
        try await corrupt(key, on: harness)
        let isExpected = { (error: StoreError) in if case .undecodable = error { true } else { false } }
        try await expectError("undecodable", from: "load", where: isExpected) { () throws(StoreError) in
          try await store.load(key)
        }
      }
      let seenItems = ItemRecorder()
      try await store.erase { item in
        seenItems.add(item)
        return item.key == secretKey.keyName
      }
      try expect(seenItems.keys, is: [key.keyName, secretKey.keyName], "the keys of the items")
      let saved = try await store.save(Note("text"), for: secretKey)
      try expect(await store.load(secretKey)?.value, is: saved.value, "load after a save")
      try await corrupt(secretKey, on: harness)
      // The observation quarantines the corrupt bytes.
      _ = try await store.observe(collection: key.collection, as: Note.self)
      let events = try await read(1, from: store.events.subscribe(), on: harness)
      guard case .valueQuarantined(secretKey.keyName, _, _) = events[0] else {
        throw Mismatch(explanation: "expected the event of the last quarantine first, found \(events)")
      }
      let itemsSeenLater = ItemRecorder()
      try await store.erase { item in
        itemsSeenLater.add(item)
        return item.key == secretKey.keyName
      }
      try expect(
        itemsSeenLater.keys, is: [key.keyName, secretKey.keyName], "the keys of the items of the last erasure")
      try await expectNoSecret(in: harness)
    },
  ]

  /// Saves, replaces and removes values that contain "secret" and have it in their ids, and saves one public value.
  ///
  /// Values of different sizes replace each other, so that a store may leave bytes of a larger value in its medium.
  private static func changeSecretValues(on harness: StoreHarness) async throws {
    let store = try await harness.open()
    let albumKey = StoreKey<Album>("album", id: "a secret album")
    for photoCount in [300, 10, 200] {
      let photos = (0..<photoCount).map { "secret \($0)" }
      try await store.save(Album(title: "a secret title", photos: photos), for: albumKey)
    }
    let noteKey = Key("note", id: "a secret note")
    try await store.save(Note("public"), for: key)
    for _ in 0..<3 {
      try await store.save(Note(String(repeating: "secret ", count: 5_000)), for: noteKey)
      try await store.save(Note("a short secret"), for: noteKey)
    }
    let removedKey = Key("note", id: "another secret note")
    try await store.save(Note("secret"), for: removedKey)
    try await store.remove(removedKey)
  }

  /// Expects that nothing in the harness's medium contains "secret", if the harness can read the medium.
  private static func expectNoSecret(in harness: StoreHarness) async throws {
    guard let contents = harness.contents else { return }
    for bytes in try await contents() where bytes.range(of: Data("secret".utf8)) != nil {
      throw Mismatch(explanation: "bytes of erased values are left: \(String(decoding: bytes, as: UTF8.self))")
    }
  }

  /// Records the items that a store passed to the closure of an erasure.
  private final class ItemRecorder: Sendable {
    private let items = Lock<[(key: StoreKeyName?, bytes: Data)]>([])

    func add(_ item: StoredItem) {
      let bytes = item.bytes
      items.withLock { $0.append((item.key, bytes)) }
    }

    /// The recorded keys, each once, in the order of their descriptions.
    var keys: [StoreKeyName] {
      Set(items.withLock { $0.compactMap(\.key) }).sorted { "\($0)" < "\($1)" }
    }

    func text(of key: StoreKeyName) -> String {
      items.withLock { items in
        items.filter { $0.key == key }.map { String(decoding: $0.bytes, as: UTF8.self) }.joined(separator: "\n")
      }
    }
  }

  /// A note of a future schema.
  private struct FutureNote: VersionedValue, Hashable {
    static let schema = StoreSchema(
      version: 2,
      migrations: [StoreMigration(from: 1, decoding: Note.self) { FutureNote(text: $0.text) }])

    var text: String
  }
}
