internal import DataStore

extension StoreConformance {
  /// The rules about keys.
  static let keyChecks = [
    Check("Each id has its own value, and so has the key without an id") { harness in
      let store = try await harness.open()
      let keys = [Key("note"), Key("note", id: "Jake"), Key("note", id: "Mattt")]
      let saved = try await saveNotes(for: keys, in: store)
      try await expectStored(saved, in: store)
      try await store.remove(keys[1])
      try expect(await store.load(keys[0]), is: saved[keys[0]], "the value without an id")
      try expect(await store.load(keys[1]), is: nil, "the removed value")
      try expect(await store.load(keys[2]), is: saved[keys[2]], "the value of another id")
    },
    Check("No key is mistaken for another, regardless of its characters") { harness in
      let store = try await harness.open()
      let saved = try await saveNotes(for: hostileKeys, in: store)
      try await expectStored(saved, in: store)
      let laterStore = try await harness.open()
      for (key, stored) in saved {
        try expect(await laterStore.load(key)?.value, is: stored.value, "\(key) after opening again")
      }
      for key in hostileKeys {
        try expect(await laterStore.load(key)?.value, is: saved[key]?.value, "\(key) before its removal")
        try await laterStore.remove(key)
        try expect(await laterStore.load(key), is: nil, "\(key) after its removal")
      }
    },
    Check("Keys that differ only in Unicode normalization are the same key") { harness in
      let store = try await harness.open()
      let saved = try await store.save(Note("composed"), for: Key("\u{E9}", id: "\u{E9}"))
      for store in [store, try await harness.open()] {
        try expect(await store.load(Key("e\u{301}", id: "e\u{301}"))?.value, is: saved.value, "load")
      }
    },
    Check("A key of the maximum length works") { harness in
      let store = try await harness.open()
      let longest = String(repeating: "a", count: StoreKeyName.maximumEncodedLength)
      let saved = try await store.save(Note("long"), for: Key(longest))
      try expect(await store.load(Key(longest)), is: saved, "load")
    },
    Check("Every call refuses a key with an empty collection or id, and a key that is too long") { harness in
      let store = try await harness.open()
      for (key, fault) in invalidKeys {
        let expected = StoreError.invalidKey(fault)
        try await expect(expected, from: "load") { () throws(StoreError) in try await store.load(key) }
        try await expect(expected, from: "save") { () throws(StoreError) in try await store.save(Note(""), for: key) }
        try await expect(expected, from: "remove") { () throws(StoreError) in try await store.remove(key) }
        try await expect(expected, from: "changes") { () throws(StoreError) in try await store.changes(of: key) }
        var batch = StoreBatch()
        batch.save(Note("valid"), for: Self.key)
        batch.remove(key)
        let invalidBatch = batch
        try await expect(expected, from: "commit") { () throws(StoreError) in try await store.commit(invalidBatch) }
        try expect(await store.load(Self.key), is: nil, "the valid key of the batch")
        try await expect(expected, from: "validate") { () throws(StoreError) in try key.validate() }
        // The two remaining calls take a collection, but no id.
        guard key.id == nil else { continue }
        try await expect(expected, from: "observe") { () throws(StoreError) in
          try await store.observe(collection: key.collection, as: Note.self)
        }
        try await expect(expected, from: "removeAll") { () throws(StoreError) in
          try await store.removeAll(in: key.collection)
        }
      }
    },
    Check("A collection has values of one type") { harness in
      let store = try await harness.open()
      let saved = try await store.save(Note("first"), for: key)
      let wrongTypeKey = StoreKey<Int>(key.keyName)
      let isExpected = { (error: StoreError) in
        if case .collectionHasAnotherType(key.collection, _, _) = error { true } else { false }
      }
      try await expectError("collectionHasAnotherType", from: "load", where: isExpected) { () throws(StoreError) in
        try await store.load(wrongTypeKey)
      }
      try await expectError("collectionHasAnotherType", from: "save", where: isExpected) { () throws(StoreError) in
        try await store.save(1, for: wrongTypeKey)
      }
      var batch = StoreBatch()
      batch.save(1, for: wrongTypeKey)
      let wrongTypeBatch = batch
      try await expectError("collectionHasAnotherType", from: "commit", where: isExpected) { () throws(StoreError) in
        try await store.commit(wrongTypeBatch)
      }
      try await expectError("collectionHasAnotherType", from: "remove", where: isExpected) { () throws(StoreError) in
        try await store.remove(wrongTypeKey)
      }
      try await expectError("collectionHasAnotherType", from: "changes", where: isExpected) { () throws(StoreError) in
        try await store.changes(of: wrongTypeKey)
      }
      try await expectError("collectionHasAnotherType", from: "observe", where: isExpected) { () throws(StoreError) in
        try await store.observe(collection: key.collection, as: Int.self)
      }
      try expect(await store.load(key), is: saved, "the value afterwards")
    },
  ]

  private static let hostileKeys: [Key] =
    [
      "../x", "..", ".", "/", "/etc/passwd", "a/b", "a.b", "a%2fb", "a%2Fb", "%", "a\\b", "a:b", "a\u{0}", "a\u{0}b",
      "a", "A", "ab", " ", "-", "_", "~", "*", "CON", "\n", "\u{1F389}", "名字", "名", "字", "a.value", ".DataStore-1",
      "a.corrupt-20201116T102240.000Z",
    ].flatMap { [Key($0), Key($0, id: "b"), Key("a", id: $0)] }

  // The encoding writes each of the three bytes of "名", and the one byte of "A", as three characters.
  private static let invalidKeys: [(Key, StoreError.InvalidKey)] = [
    (Key(""), .emptyCollection),
    (Key("", id: "Jake"), .emptyCollection),
    (Key("note", id: ""), .emptyID),
    (Key(String(repeating: "a", count: 201)), .tooLong(encodedLength: 201)),
    (Key(String(repeating: "名", count: 23)), .tooLong(encodedLength: 207)),
    (Key("note", id: String(repeating: "A", count: 66)), .tooLong(encodedLength: 203)),
  ]

  private static func saveNotes(for keys: [Key], in store: any KeyValueStore) async throws -> [Key: StoredValue<Note>] {
    var saved: [Key: StoredValue<Note>] = [:]
    for key in keys { saved[key] = try await store.save(Note("\(key)"), for: key) }
    return saved
  }

  private static func expectStored(_ saved: [Key: StoredValue<Note>], in store: any KeyValueStore) async throws {
    for (key, stored) in saved { try expect(await store.load(key), is: stored, "\(key)") }
  }
}
