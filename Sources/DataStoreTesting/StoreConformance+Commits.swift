internal import DataStore
internal import Multicast

extension StoreConformance {
  /// The rules about commits of several changes.
  static let commitChecks = [
    Check("A commit makes all of its changes") { harness in
      let store = try await harness.open()
      let old = try await store.save(Note("old"), for: first)
      var batch = StoreBatch()
      batch.save(Note("new"), for: second)
      batch.save(7, for: number)
      batch.remove(first)
      batch.remove(third)
      let commit = try await store.commit(batch)
      try expect(commit.revision, is: old.revision + 1, "the revision")
      for store in [store, try await harness.open()] {
        try expect(await store.load(first), is: nil, "the removed value")
        try expect(await store.load(third), is: nil, "the value that never existed")
        let (note, count) = (try await store.load(second), try await store.load(number))
        try expect(note?.value, is: Note("new"), "the saved note")
        try expect(count?.value, is: 7, "the saved number")
        try expect([note?.tag, count?.tag], is: [commit.tag, commit.tag], "the tags")
      }
      try expect(await store.load(second)?.revision, is: commit.revision, "the revision of the note")
    },
    Check("A commit is one element for observers of a collection, and one change for observers of a key") { harness in
      let store = try await harness.open()
      let old = try await store.save(Note("old"), for: first)
      let collection = try await store.observe(collection: first.collection, as: Note.self).changes
      let numbers = try await store.observe(collection: number.collection, as: Int.self).changes
      let key = try await store.changes(of: first).subscribe()
      var batch = StoreBatch()
      batch.save(Note("new"), for: second)
      batch.remove(first)
      batch.save(7, for: number)
      let commit = try await store.commit(batch)
      let saved = try await stored(second, in: store)
      let count = try await stored(number, in: store)
      try expect(
        await read(1, from: collection, on: harness),
        is: [[.saved(second, saved), .removed(first, revision: commit.revision)]], "the changes of the collection")
      try expect(await read(1, from: numbers, on: harness), is: [[.saved(number, count)]], "the numbers")
      try expect(
        await read(2, from: key, on: harness),
        is: [.saved(first, old), .removed(first, revision: commit.revision)], "the changes of the key")
    },
    Check("An external commit is one element for observers of a collection if the medium is watched") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      try await store.save(Note("old"), for: first)
      let changes = try await store.observe(collection: first.collection, as: Note.self).changes
      var batch = StoreBatch()
      batch.save(Note("new"), for: second)
      batch.save(Note("newer"), for: third)
      batch.remove(first)
      let commit = try await other.commit(batch)
      // If the medium isn't watched, a call notices only the change of its own key.
      if harness.isWatched {
        let element = try await read(1, from: changes, on: harness)[0]
        try expect(Set(element.map(\.key)), is: [first, second, third], "the keys of the element")
        try expect(element.count, is: 3, "the number of changes")
        let saved = element.compactMap(\.stored)
        try expect(saved.map(\.tag), is: [commit.tag, commit.tag], "the tags")
        try expect(Set(saved.map(\.revision)).count, is: 1, "the number of revisions of saved values")
      } else {
        for key in [first, second, third] { _ = try await store.load(key) }
        var found: [Change] = []
        while found.count < 3 { found += try await read(1, from: changes, on: harness)[0] }
        try expect(found.map(\.key), is: [first, second, third], "the keys")
      }
    },
    Check("A commit with a failed precondition changes nothing, and its error names the key") { harness in
      let store = try await harness.open()
      let saved = try await store.save(Note("saved"), for: first)
      let changes = try await store.observe(collection: first.collection, as: Note.self).changes
      for tag in [nil, StoreTag()] {
        var batch = StoreBatch()
        batch.save(Note("second"), for: second)
        batch.require(tag, of: first)
        batch.remove(first)
        let refused = batch
        try await expect(StoreError.preconditionFailed(first.keyName), from: "commit") { () throws(StoreError) in
          try await store.commit(refused)
        }
      }
      try expect(await store.load(first), is: saved, "the required value")
      try expect(await store.load(second), is: nil, "the other value")
      var batch = StoreBatch()
      batch.require(saved.tag, of: first)
      batch.require(nil, of: second)
      batch.save(Note("second"), for: second)
      let commit = try await store.commit(batch)
      try expect(commit.revision, is: saved.revision + 1, "the revision")
      let new = try await stored(second, in: store)
      try expect(await read(1, from: changes, on: harness), is: [[.saved(second, new)]], "the changes")
    },
    Check("A precondition holds only until the next save, even of an equal value or by another store") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      let saved = try await store.save(Note("same"), for: first)
      let external = try await other.save(Note("same"), for: first)
      var batch = StoreBatch()
      batch.require(saved.tag, of: first)
      batch.save(Note("lost"), for: first)
      let outdated = batch
      try await expect(StoreError.preconditionFailed(first.keyName), from: "commit") { () throws(StoreError) in
        try await store.commit(outdated)
      }
      try expect(await store.load(first)?.tag, is: external.tag, "the tag")
      try expect(await harness.open().load(first)?.tag, is: external.tag, "the tag after opening again")
      batch = StoreBatch()
      batch.require(external.tag, of: first)
      batch.save(Note("kept"), for: first)
      try await store.commit(batch)
      try expect(await other.load(first)?.value, is: Note("kept"), "the value that the other store loads")
    },
    Check("Concurrent changes with preconditions lose no update") { harness in
      let stores = [try await harness.open(), try await harness.open()]
      let (tasks, rounds) = (4, 5)
      try await withThrowingTaskGroup { group in
        for task in 0..<tasks {
          group.addTask {
            let store = stores[task % stores.count]
            for _ in 1...rounds { try await increment(in: store) }
          }
        }
        try await group.waitForAll()
      }
      try expect(await harness.open().load(number)?.value, is: tasks * rounds, "the number")
    },
    Check("A commit with a value that cannot be encoded changes nothing") { harness in
      let store = try await harness.open()
      var batch = StoreBatch()
      batch.save(Note("encodable"), for: first)
      batch.save(.unencodable, for: second)
      let unencodable = batch
      try await expectError(
        "encodingFailed", from: "commit",
        where: { error in if case .encodingFailed(second.keyName, _) = error { true } else { false } }
      ) { () throws(StoreError) in try await store.commit(unencodable) }
      try expect(await store.load(first), is: nil, "the value that can be encoded")
      try expect(await store.save(Note("next"), for: first).revision, is: 1, "the next revision")
    },
    Check("An empty commit and one that removes nothing change nothing") { harness in
      let store = try await harness.open()
      let saved = try await store.save(Note("saved"), for: first)
      var batch = StoreBatch()
      try expect(await store.commit(batch).revision, is: saved.revision, "the revision of an empty commit")
      batch.remove(second)
      try expect(await store.commit(batch).revision, is: saved.revision, "the revision of a removal of nothing")
      try expect(await store.save(Note("next"), for: first).revision, is: saved.revision + 1, "the next revision")
    },
    Check("Removing a collection removes all of its values as one commit, and no other values") { harness in
      let store = try await harness.open()
      for key in [first, second, third] { try await store.save(Note("gone"), for: key) }
      let kept = try await store.save(7, for: number)
      let changes = try await store.observe(collection: first.collection, as: Note.self).changes
      try await store.removeAll(in: first.collection)
      let removals = try await read(1, from: changes, on: harness)[0]
      try expect(Set(removals.map(\.key)), is: [first, second, third], "the removed keys")
      try expect(removals.map(\.revision), is: [5, 5, 5], "the revisions")
      for store in [store, try await harness.open()] {
        for key in [first, second, third] { try expect(await store.load(key), is: nil, "\(key)") }
        try expect(await store.load(number)?.value, is: kept.value, "the value of another collection")
      }
      try await store.removeAll(in: "never used")
    },
    Check("A store can remove a collection that it has not used before") { harness in
      try await harness.open().save(Note("gone"), for: first)
      try await harness.open().removeAll(in: first.collection)
      try expect(await harness.open().load(first), is: nil, "load")
    },
  ]

  private static let first = Key("note", id: "first")
  private static let second = Key("note", id: "second")
  private static let third = Key("note")
  private static let number = StoreKey<Int>("number")

  private static func stored<Value>(
    _ key: StoreKey<Value>, in store: any KeyValueStore
  ) async throws -> StoredValue<Value> {
    guard let stored = try await store.load(key) else { throw Mismatch(explanation: "nothing is stored for \(key)") }
    return stored
  }

  /// Adds one to the stored number, and retries whenever another commit comes first.
  private static func increment(in store: any KeyValueStore) async throws(StoreError) {
    while true {
      let stored = try await store.load(number)
      var batch = StoreBatch()
      batch.require(stored?.tag, of: number)
      batch.save((stored?.value ?? 0) + 1, for: number)
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
