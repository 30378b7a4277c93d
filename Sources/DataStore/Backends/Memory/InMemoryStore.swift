public import Foundation

/// A store that keeps its values in memory, for tests, previews, and values that need not survive the process.
///
/// A commit is atomic, including for other stores over the same ``InMemoryStorage``.
public struct InMemoryStore: WrappingStore {
  package let base: BackedStore<InMemoryBackend>

  /// Creates a store in memory.
  ///
  /// - Parameters:
  ///   - storage: The storage that holds the bytes. A second store over the same storage simulates a relaunch.
  ///   - now: Returns the current time, for ``StoredValue/savedAt`` and the names of quarantined bytes.
  public init(storage: InMemoryStorage = InMemoryStorage(), now: @escaping @Sendable () -> Date = { Date() }) {
    base = BackedStore(backend: InMemoryBackend(storage: storage), now: now)
  }

  /// Erases items so that no trace of them is left in the storage.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await base.erase(where: isErased)
  }

  /// Locks a name, for work that only one of several stores over the same storage may do.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    try await base.acquireLock(name)
  }
}
