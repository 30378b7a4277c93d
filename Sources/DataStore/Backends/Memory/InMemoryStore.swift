public import Foundation

/// A store that keeps its values in memory: for tests, previews, and whatever need not survive the process.
///
/// A commit is made whole or not at all, also for other stores over the same ``InMemoryStorage``.
public struct InMemoryStore: StoreFacade {
  package let base: BackedStore<InMemoryBackend>

  /// Creates a store in memory.
  ///
  /// - Parameters:
  ///   - storage: Where the bytes are. A second store over the same storage simulates a relaunch.
  ///   - now: Returns the present time, for ``StoredValue/savedAt``.
  public init(storage: InMemoryStorage = InMemoryStorage(), now: @escaping @Sendable () -> Date = { Date() }) {
    base = BackedStore(backend: InMemoryBackend(storage: storage), now: now)
  }

  /// Erases what is kept of some keys, so that nothing of it is left.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await base.erase(where: isErased)
  }

  /// Locks a name, so that one of several processes can do what only one may do.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    try await base.acquireLock(name)
  }
}
