internal import DataStore
internal import Multicast

extension StoreConformance {
  /// The rules about locks, which a store need not support.
  static let lockChecks = [
    Check("A name is locked by one store at a time, and becomes free when the lock is released") { harness in
      let (store, other) = (try await harness.open(), try await harness.open())
      var lock: StoreLock?
      switch try await store.acquireLock("name") {
      case .acquired(let acquired): lock = acquired
      case .held: throw Mismatch(explanation: "acquireLock: the name is locked although nothing has locked it")
      case .unsupported:
        try expect(false, is: harness.hasLocks, "whether the store supports locks")
        return
      }
      for store in [store, other] {
        guard case .held = try await store.acquireLock("name") else {
          throw Mismatch(explanation: "acquireLock: the name was locked twice")
        }
      }
      guard case .acquired = try await other.acquireLock("another name") else {
        throw Mismatch(explanation: "acquireLock: another name isn't free")
      }
      guard case .held(let releases) = try await other.acquireLock("name") else {
        throw Mismatch(explanation: "acquireLock: the name was locked twice")
      }
      let releaseSubscription = releases.subscribe()
      // A lock has no effect on other calls, or on the stored values.
      try await other.save(Note("saved"), for: key)
      try expect(await store.load(key)?.value, is: Note("saved"), "load while a name is locked")
      try expect(await lock?.isHeld(), is: true, "whether the name is still locked")
      // Releasing the last reference to the lock unlocks the name.
      lock = nil
      try expect(await read(1, from: releaseSubscription, on: harness).count, is: 1, "the number of releases")
      guard case .acquired = try await other.acquireLock("name") else {
        throw Mismatch(explanation: "acquireLock: the name isn't free after its lock was released")
      }
    },
    Check("A name that isn't a valid collection name can't be locked") { harness in
      let store = try await harness.open()
      if case .unsupported = try await store.acquireLock("name") { return }
      try await expect(.invalidKey(.emptyCollection), from: "acquireLock") { () async throws(StoreError) in
        try await store.acquireLock("")
      }
    },
  ]
}
