internal import DataStore
internal import Multicast

extension StoreConformance {
  /// The rules about suspended stores.
  ///
  /// A store for which `suspend()` does nothing keeps them too.
  static let suspensionChecks = [
    Check("A suspended store keeps working, and what it saves is durable and sent") { harness in
      let store = try await harness.open()
      let first = try await store.save(Note("first"), for: key)
      let observer = try await store.changes(of: key).subscribe()
      await store.suspend()
      try expect(await store.load(key), is: first, "load while the store is suspended")
      let second = try await store.save(Note("second"), for: key)
      try expect(await store.load(key), is: second, "load of a value that the suspended store has saved")
      try expect(await harness.open().load(key)?.value, is: second.value, "another store's load")
      let lateObserver = try await store.changes(of: key).subscribe()
      try expect(
        await store.observe(collection: key.collection, as: Note.self).stored, is: [.init(key: key, stored: second)],
        "the stored values of the suspended store")
      await store.resume()
      try expect(await store.load(key), is: second, "load after the suspension")
      let third = try await store.save(Note("third"), for: key)
      try expect(await harness.open().load(key)?.value, is: third.value, "another store's load after the suspension")
      try expect(
        await read(3, from: observer, on: harness),
        is: [.saved(key, first), .saved(key, second), .saved(key, third)], "the changes")
      try expect(
        await read(2, from: lateObserver, on: harness), is: [.saved(key, second), .saved(key, third)],
        "the changes of an observer that has come during the suspension")
    },
    Check("External changes during a suspension reach every observer once after it, and none ends a stream") {
      harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      let removedKey = Key("letter", id: "Zoe")
      let first = try await store.save(Note("first"), for: key)
      let removed = try await store.save(Note("removed"), for: removedKey)
      let observer = try await store.changes(of: key).subscribe()
      let removalObserver = try await store.changes(of: removedKey).subscribe()
      let collectionObserver = try await store.observe(collection: key.collection, as: Note.self).changes
      await store.suspend()
      let lateObserver = try await store.changes(of: key).subscribe()
      let external = try await other.save(Note("external"), for: key)
      try await other.remove(removedKey)
      await store.resume()
      if !harness.isWatched {
        // Such a store notices an external change by its next call for the key.
        for key in [key, removedKey] { _ = try await store.load(key) }
      }
      // The first element is the one from before the suspension.
      let change = try await read(2, from: observer, on: harness)[1]
      try expect(change.stored?.value, is: external.value, "the value after the suspension")
      try expect(change.stored?.tag, is: external.tag, "the tag of the value after the suspension")
      let removal = try await read(2, from: removalObserver, on: harness)[1]
      try expect(removal, is: .removed(removedKey, revision: removal.revision), "the removal")
      // Another element of the external changes would come before these.
      let last = try await store.save(Note("last"), for: key)
      let lastOfRemoved = try await store.save(Note("last"), for: removedKey)
      try expect(
        await read(1, from: observer, on: harness), is: [.saved(key, last)], "the changes after the external one")
      try expect(
        await read(1, from: removalObserver, on: harness), is: [.saved(removedKey, lastOfRemoved)],
        "the changes after the external removal")
      try expect(
        await read(2, from: collectionObserver, on: harness), is: [[change], [.saved(key, last)]],
        "the changes of the collection")
      try expect(
        await read(3, from: lateObserver, on: harness), is: [.saved(key, first), change, .saved(key, last)],
        "the changes of an observer that has come during the suspension")
      try expect(removed.revision < removal.revision, is: true, "whether the removal has a later revision")
    },
    Check("Suspensions are counted, and resuming a store that isn't suspended does nothing") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      await store.resume()
      let first = try await store.save(Note("first"), for: key)
      let observer = try await store.changes(of: key).subscribe()
      // The suspension after a surplus `resume()` isn't ended by it.
      await store.resume()
      for _ in 1...2 { await store.suspend() }
      await store.resume()
      let second = try await store.save(Note("second"), for: key)
      let external = try await other.save(Note("external"), for: key)
      for _ in 1...2 { await store.resume() }
      if !harness.isWatched { _ = try await store.load(key) }
      let changes = try await read(3, from: observer, on: harness)
      try expect(Array(changes.prefix(2)), is: [.saved(key, first), .saved(key, second)], "the store's own changes")
      try expect(changes[2].stored?.tag, is: external.tag, "the tag of the external value")
      let last = try await store.save(Note("last"), for: key)
      try expect(
        await read(1, from: observer, on: harness), is: [.saved(key, last)], "the changes after the external one")
    },
    Check("A lock that is held while the store is suspended stays held, and a suspended store can lock a name") {
      harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      guard var lock = try await acquire("name", in: store) else { return }
      await store.suspend()
      try expect(await lock.isHeld(), is: true, "whether the lock is held while the store is suspended")
      guard let laterLock = try await acquire("later name", in: store) else {
        throw Mismatch(explanation: "acquireLock: a suspended store can't lock another name")
      }
      for name in ["name", "later name"] {
        guard case .held = try await other.acquireLock(name) else {
          throw Mismatch(explanation: "acquireLock: a name isn't locked any more, because the store was suspended")
        }
      }
      guard case .held(let releases) = try await store.acquireLock("name") else {
        throw Mismatch(explanation: "acquireLock: the suspended store has locked a name twice")
      }
      let releaseSubscription = releases.subscribe()
      // Releases the lock of the other name.
      lock = laterLock
      try expect(await read(1, from: releaseSubscription, on: harness).count, is: 1, "the number of releases")
      if try await acquire("name", in: other) == nil {
        throw Mismatch(explanation: "acquireLock: the name isn't free after its lock was released")
      }
      await store.resume()
      try expect(await lock.isHeld(), is: true, "whether the other lock is held after the suspension")
    },
  ]

  private static func acquire(_ name: String, in store: any KeyValueStore) async throws -> StoreLock? {
    if case .acquired(let lock) = try await store.acquireLock(name) { lock } else { nil }
  }
}
