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
    Check("Ids of up to 4096 bytes work in every call, and are told apart") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      let saved = try await saveNotes(for: longKeys, in: store)
      try await expectStored(saved, in: store)
      try expect(
        await store.load(Key("note", id: String(repeating: "e\u{301}", count: 100)))?.value,
        is: saved[Key("note", id: String(repeating: "\u{E9}", count: 100))]?.value, "another normalization")
      for (key, stored) in saved {
        try expect(await other.load(key)?.value, is: stored.value, "\(key) in another store")
      }
      // A store that has not used the keys lists them, with their ids.
      let later = try await harness.open()
      let observation = try await later.observe(collection: "note", as: Note.self)
      let entries = Dictionary(
        observation.stored.map { ($0.key, $0.stored.value) }, uniquingKeysWith: { first, _ in first })
      try expect(entries, is: saved.mapValues(\.value), "the observed values")
      let changedKey = longKeys[0]
      var batch = StoreBatch()
      batch.require(saved[changedKey]?.tag, of: changedKey)
      batch.save(Note("changed"), for: changedKey)
      batch.remove(longKeys[1])
      let commit = try await other.commit(batch)
      // If the medium isn't watched, a call notices only the change of its own key.
      if !harness.isWatched { for key in longKeys.prefix(2) { _ = try await later.load(key) } }
      var changes: [Change] = []
      while changes.count < 2 { changes += try await read(1, from: observation.changes, on: harness)[0] }
      try expect(Set(changes.map(\.key)), is: Set(longKeys.prefix(2)), "the keys of the external changes")
      try expect(changes.compactMap(\.stored).map(\.tag), is: [commit.tag], "the tags of the external changes")
      try expect(await store.load(changedKey)?.value, is: Note("changed"), "load of the changed key")
      try expect(await store.load(longKeys[1]), is: nil, "load of the removed key")
      try await harness.open().removeAll(in: "note")
      for key in longKeys { try expect(await harness.open().load(key), is: nil, "\(key) after its removal") }
    },
    Check("A value in parts may have an id of 4096 bytes") { harness in
      let key = StoreKey<Album>("album", id: longestID)
      for value in Album.versions {
        let saved = try await harness.open().save(value, for: key)
        let store = try await harness.open()
        try expect(await store.load(key)?.value, is: value, "load")
        let entries = try await store.observe(collection: key.collection, as: Album.self).stored
        try expect(entries.map(\.key), is: [key], "the observed keys")
        try expect(entries.map(\.stored.tag), is: [saved.tag], "the observed tags")
      }
    },
    Check("Corrupt bytes of a long id are quarantined like those of a short one", needsCorruption: true) { harness in
      let key = Key("note", id: longestID)
      let store = try await harness.open()
      for _ in 1...2 {
        try await store.save(Note("lost"), for: key)
        try await corrupt(key, on: harness)
        let isExpected = { (error: StoreError) in
          if case .undecodable(key.keyName, _, _) = error { true } else { false }
        }
        try await expectError("undecodable", from: "load", where: isExpected) { () throws(StoreError) in
          try await store.load(key)
        }
      }
      try await store.save(Note("lost"), for: key)
      try await corrupt(key, on: harness)
      // A store that has not used the key can't know its id, but neither fails nor leaves the bytes.
      let other = try await harness.open()
      try expect(await other.observe(collection: "note", as: Note.self).stored.count, is: 0, "the observed values")
      try expect(await other.load(key), is: nil, "load after the quarantine")
      let saved = try await other.save(Note("new"), for: key)
      try expect(await store.load(key)?.tag, is: saved.tag, "load after a save")
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
    // The id has one byte more than the maximum.
    (Key("note", id: String(repeating: "a", count: 4097)), .tooLong(encodedLength: 4102)),
    (Key("note", id: String(repeating: "名", count: 1366)), .tooLong(encodedLength: 12_299)),
    // The collection leaves no room for the digest of the id.
    (Key(String(repeating: "a", count: 135), id: String(repeating: "a", count: 66)), .tooLong(encodedLength: 202)),
  ]

  static let longestID = String(repeating: "a", count: StoreKeyName.maximumIDLength)

  /// Keys whose encoded names would be longer than the maximum, and some short ones.
  private static let longKeys: [Key] = [
    longestID, String(repeating: "名", count: 1365), String(repeating: "A", count: 4096),
    String(repeating: "a", count: 4095), String(repeating: "A", count: 66), String(repeating: "\u{E9}", count: 100),
    "https://example.com/search?q=" + String(repeating: "%20", count: 60), "一个很长的搜索短语，有二十五个以上的汉字，还有标点符号。",
    String(repeating: "/", count: 300), String(repeating: "\u{0}\n\"\\", count: 60), "short",
    "~" + longestID.prefix(64),
  ].map { Key("note", id: $0) }

  private static func saveNotes(for keys: [Key], in store: any KeyValueStore) async throws -> [Key: StoredValue<Note>] {
    var saved: [Key: StoredValue<Note>] = [:]
    for key in keys { saved[key] = try await store.save(Note("\(key)"), for: key) }
    return saved
  }

  private static func expectStored(_ saved: [Key: StoredValue<Note>], in store: any KeyValueStore) async throws {
    for (key, stored) in saved { try expect(await store.load(key), is: stored, "\(key)") }
  }
}
