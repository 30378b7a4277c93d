internal import DataStore

extension StoreConformance {
  /// The rules about loading, saving and removing.
  static let valueChecks = [
    Check("A new store holds nothing") { harness in
      let store = try await harness.open()
      try expect(await store.load(key), is: nil, "load")
    },
    Check("A saved value is loaded as it was saved") { harness in
      let store = try await harness.open()
      let saved = try await store.save(Note("名字 \u{0} \"\n\u{1F389}", number: 0.1 + 0.2), for: key)
      try expect(saved.value, is: Note("名字 \u{0} \"\n\u{1F389}", number: 0.1 + 0.2), "what save returned")
      try expect(await store.load(key), is: saved, "load")
    },
    Check("A later save replaces the value") { harness in
      let store = try await harness.open()
      try await store.save(Note("old"), for: key)
      let new = try await store.save(Note("new"), for: key)
      try expect(await store.load(key), is: new, "load")
    },
    Check("Nil is a value like any other") { harness in
      let store = try await harness.open()
      let optionalKey = StoreKey<Int?>("optional")
      let saved = try await store.save(nil, for: optionalKey)
      try expect(await store.load(optionalKey), is: saved, "load")
      try expect(await harness.open().load(optionalKey)?.savedAt, is: saved.savedAt, "savedAt after opening again")
    },
    Check("Revisions count the changes of all keys, starting from 1") { harness in
      let store = try await harness.open()
      let first = try await store.save(Note("1"), for: key)
      let second = try await store.save(2, for: StoreKey("number"))
      try await store.remove(key)
      let fourth = try await store.save(Note("4"), for: key)
      try expect([first.revision, second.revision, fourth.revision], is: [1, 2, 4], "revisions")
    },
    Check("A removed value is gone, even for a store that is opened after the removal") { harness in
      let store = try await harness.open()
      try await store.save(Note("gone"), for: key)
      try await store.remove(key)
      try expect(await store.load(key), is: nil, "load")
      try expect(await harness.open().load(key), is: nil, "load after opening again")
    },
    Check("Removing a missing value changes nothing") { harness in
      let store = try await harness.open()
      try await store.remove(key)
      try expect(await store.save(Note("first"), for: key).revision, is: 1, "revision of the first save")
    },
    Check("A reopened store loads a value with the time of its save and with revision 0") { harness in
      let saved = try await harness.open().save(Note("kept"), for: key)
      let loaded = try await harness.open().load(key)
      try expect(
        loaded, is: StoredValue(value: saved.value, savedAt: saved.savedAt, revision: 0, tag: saved.tag),
        "load after opening again")
    },
    Check("A reopened store can remove a value that an earlier store saved") { harness in
      try await harness.open().save(Note("old"), for: key)
      try await harness.open().remove(key)
      try expect(await harness.open().load(key), is: nil, "load after the removal")
    },
  ]
}
