internal import DataStore
internal import Multicast

extension StoreConformance {
  /// The rules about commits of several changes.
  static let commitChecks = [
    Check("A commit makes all of its changes") { harness in
      let store = try await harness.open()
      let old = try await store.save(Note("old"), for: firstKey)
      var batch = StoreBatch()
      batch.save(Note("new"), for: secondKey)
      batch.save(7, for: numberKey)
      batch.remove(firstKey)
      batch.remove(thirdKey)
      let commit = try await store.commit(batch)
      try expect(commit.revision, is: old.revision + 1, "the revision")
      for store in [store, try await harness.open()] {
        try expect(await store.load(firstKey), is: nil, "the removed value")
        try expect(await store.load(thirdKey), is: nil, "the value that never existed")
        let (note, savedNumber) = (try await store.load(secondKey), try await store.load(numberKey))
        try expect(note?.value, is: Note("new"), "the saved note")
        try expect(savedNumber?.value, is: 7, "the saved number")
        try expect([note?.tag, savedNumber?.tag], is: [commit.tag, commit.tag], "the tags")
        try expect([note?.savedAt, savedNumber?.savedAt], is: [commit.savedAt, commit.savedAt], "the times")
      }
      // A revision has no meaning for another store object, so only the first store's is checked.
      try expect(await store.load(secondKey)?.revision, is: commit.revision, "the revision of the note")
    },
    Check("A commit is one element for observers of a collection, and one change for observers of a key") { harness in
      let store = try await harness.open()
      let old = try await store.save(Note("old"), for: firstKey)
      let collectionChanges = try await store.observe(collection: firstKey.collection, as: Note.self).changes
      let numberChanges = try await store.observe(collection: numberKey.collection, as: Int.self).changes
      let keyChanges = try await store.changes(of: firstKey).subscribe()
      var batch = StoreBatch()
      batch.save(Note("new"), for: secondKey)
      batch.remove(firstKey)
      batch.save(7, for: numberKey)
      let commit = try await store.commit(batch)
      let savedNote = try await loadExisting(secondKey, from: store)
      let savedNumber = try await loadExisting(numberKey, from: store)
      try expect(
        await read(1, from: collectionChanges, on: harness),
        is: [[.saved(secondKey, savedNote), .removed(firstKey, revision: commit.revision)]],
        "the changes of the collection")
      try expect(
        await read(1, from: numberChanges, on: harness), is: [[.saved(numberKey, savedNumber)]],
        "the changes of the number")
      // A subscriber of a key first receives the stored value, which here is from before the commit.
      try expect(
        await read(2, from: keyChanges, on: harness),
        is: [.saved(firstKey, old), .removed(firstKey, revision: commit.revision)], "the changes of the key")
    },
    Check("An external commit is one element for observers of a collection if the medium is watched") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      try await store.save(Note("old"), for: firstKey)
      let changes = try await store.observe(collection: firstKey.collection, as: Note.self).changes
      var batch = StoreBatch()
      batch.save(Note("new"), for: secondKey)
      batch.save(Note("newer"), for: thirdKey)
      batch.remove(firstKey)
      let commit = try await other.commit(batch)
      // If the medium isn't watched, a call notices only the change of its own key.
      if harness.isWatched {
        let element = try await read(1, from: changes, on: harness)[0]
        try expect(Set(element.map(\.key)), is: [firstKey, secondKey, thirdKey], "the keys of the element")
        try expect(element.count, is: 3, "the number of changes")
        let saved = element.compactMap(\.stored)
        try expect(saved.map(\.tag), is: [commit.tag, commit.tag], "the tags")
        try expect(Set(saved.map(\.revision)).count, is: 1, "the number of revisions of saved values")
      } else {
        for key in [firstKey, secondKey, thirdKey] { _ = try await store.load(key) }
        var found: [Change] = []
        while found.count < 3 { found += try await read(1, from: changes, on: harness)[0] }
        // A store that is watched after all may read the changes in another order than the loads.
        try expect(Set(found.map(\.key)), is: [firstKey, secondKey, thirdKey], "the keys")
        try expect(found.count, is: 3, "the number of changes")
      }
    },
    Check("A commit with a failed precondition changes nothing, and its error names the key") { harness in
      let store = try await harness.open()
      let saved = try await store.save(Note("saved"), for: firstKey)
      let changes = try await store.observe(collection: firstKey.collection, as: Note.self).changes
      for wrongTag in [nil, StoreTag()] {
        var batch = StoreBatch()
        batch.save(Note("second"), for: secondKey)
        batch.require(wrongTag, of: firstKey)
        batch.remove(firstKey)
        let failingBatch = batch
        try await expect(StoreError.preconditionFailed(firstKey.keyName), from: "commit") { () throws(StoreError) in
          try await store.commit(failingBatch)
        }
      }
      try expect(await store.load(firstKey), is: saved, "the required value")
      try expect(await store.load(secondKey), is: nil, "the other value")
      var batch = StoreBatch()
      batch.require(saved.tag, of: firstKey)
      batch.require(nil, of: secondKey)
      batch.save(Note("second"), for: secondKey)
      let commit = try await store.commit(batch)
      try expect(commit.revision, is: saved.revision + 1, "the revision")
      let new = try await loadExisting(secondKey, from: store)
      try expect(await read(1, from: changes, on: harness), is: [[.saved(secondKey, new)]], "the changes")
    },
    Check("A precondition holds only until the next save, even of an equal value or by another store") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      let saved = try await store.save(Note("same"), for: firstKey)
      let external = try await other.save(Note("same"), for: firstKey)
      var batch = StoreBatch()
      batch.require(saved.tag, of: firstKey)
      batch.save(Note("lost"), for: firstKey)
      let outdatedBatch = batch
      try await expect(StoreError.preconditionFailed(firstKey.keyName), from: "commit") { () throws(StoreError) in
        try await store.commit(outdatedBatch)
      }
      try expect(await store.load(firstKey)?.tag, is: external.tag, "the tag")
      try expect(await harness.open().load(firstKey)?.tag, is: external.tag, "the tag after opening again")
      batch = StoreBatch()
      batch.require(external.tag, of: firstKey)
      batch.save(Note("kept"), for: firstKey)
      try await store.commit(batch)
      try expect(await other.load(firstKey)?.value, is: Note("kept"), "the value that the other store loads")
    },
    Check("Concurrent changes with preconditions lose no update") { harness in
      let stores = [try await harness.open(), try await harness.open()]
      let (taskCount, incrementsPerTask) = (4, 5)
      try await withThrowingTaskGroup { group in
        for task in 0..<taskCount {
          group.addTask {
            let store = stores[task % stores.count]
            for _ in 1...incrementsPerTask { try await incrementNumber(in: store) }
          }
        }
        try await group.waitForAll()
      }
      try expect(await harness.open().load(numberKey)?.value, is: taskCount * incrementsPerTask, "the number")
    },
    Check("A commit with a value that cannot be encoded changes nothing") { harness in
      let store = try await harness.open()
      var batch = StoreBatch()
      batch.save(Note("encodable"), for: firstKey)
      batch.save(.unencodable, for: secondKey)
      let unencodableBatch = batch
      try await expectError(
        "encodingFailed", from: "commit",
        where: { error in if case .encodingFailed(secondKey.keyName, _) = error { true } else { false } }
      ) { () throws(StoreError) in try await store.commit(unencodableBatch) }
      try expect(await store.load(firstKey), is: nil, "the value that can be encoded")
      try expect(await store.save(Note("next"), for: firstKey).revision, is: 1, "the next revision")
    },
    Check("An empty commit and one that removes nothing change nothing") { harness in
      let store = try await harness.open()
      let saved = try await store.save(Note("saved"), for: firstKey)
      var batch = StoreBatch()
      try expect(await store.commit(batch).revision, is: saved.revision, "the revision of an empty commit")
      batch.remove(secondKey)
      try expect(await store.commit(batch).revision, is: saved.revision, "the revision of a removal of nothing")
      try expect(await store.save(Note("next"), for: firstKey).revision, is: saved.revision + 1, "the next revision")
    },
    Check("Removing a collection removes all of its values as one commit, and no other values") { harness in
      let store = try await harness.open()
      for key in [firstKey, secondKey, thirdKey] { try await store.save(Note("gone"), for: key) }
      let kept = try await store.save(7, for: numberKey)
      let changes = try await store.observe(collection: firstKey.collection, as: Note.self).changes
      try await store.removeAll(in: firstKey.collection)
      let removals = try await read(1, from: changes, on: harness)[0]
      try expect(Set(removals.map(\.key)), is: [firstKey, secondKey, thirdKey], "the removed keys")
      // The removals share one revision, which follows those of the four saves.
      try expect(removals.map(\.revision), is: [5, 5, 5], "the revisions")
      for store in [store, try await harness.open()] {
        for key in [firstKey, secondKey, thirdKey] { try expect(await store.load(key), is: nil, "\(key)") }
        try expect(await store.load(numberKey)?.value, is: kept.value, "the value of another collection")
      }
      try await store.removeAll(in: "never used")
    },
    Check("A store can remove a collection that it has not used before") { harness in
      try await harness.open().save(Note("gone"), for: firstKey)
      try await harness.open().removeAll(in: firstKey.collection)
      try expect(await harness.open().load(firstKey), is: nil, "load")
    },
  ]

  private static let firstKey = Key("note", id: "first")
  private static let secondKey = Key("note", id: "second")
  private static let thirdKey = Key("note")
  private static let numberKey = StoreKey<Int>("number")

  /// Loads a value, and throws a ``Mismatch`` if nothing is stored.
  private static func loadExisting<Value>(
    _ key: StoreKey<Value>, from store: any KeyValueStore
  ) async throws -> StoredValue<Value> {
    guard let stored = try await store.load(key) else { throw Mismatch(explanation: "nothing is stored for \(key)") }
    return stored
  }

  /// Adds one to the stored number, and retries whenever another commit comes first.
  private static func incrementNumber(in store: any KeyValueStore) async throws(StoreError) {
    while true {
      let stored = try await store.load(numberKey)
      var batch = StoreBatch()
      batch.require(stored?.tag, of: numberKey)
      batch.save((stored?.value ?? 0) + 1, for: numberKey)
      do throws(StoreError) {
        try await store.commit(batch)
        return
      } catch .preconditionFailed {
        continue
      } catch {
        throw error
      }
    }
  }
}
