package import Foundation

/// A backend that keeps bytes in an ``InMemoryStorage``.
package struct InMemoryBackend: PlacedBackend, Sendable {
  /// Identifies a backend among those over the same storage, and ends the backend's watch when the backend is released.
  private final class Identity: Sendable {
    let storage: InMemoryStorage

    init(_ storage: InMemoryStorage) {
      self.storage = storage
    }

    deinit {
      storage.stopWatching(ObjectIdentifier(self))
    }
  }

  private let identity: Identity
  private var storage: InMemoryStorage { identity.storage }
  private var id: ObjectIdentifier { ObjectIdentifier(identity) }
  /// The external changes that were taken in the current snapshot or decision.
  ///
  /// If the storage changes meanwhile, the snapshot or decision is repeated, and receives these changes again.
  private var takenChanges: [String]?

  package init(storage: InMemoryStorage) {
    identity = Identity(storage)
  }

  package var place: StorePlace { .object(ObjectIdentifier(storage)) }

  package func read(_ name: String) -> Data? {
    storage[name]
  }

  package mutating func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    takenChanges = []
    defer { takenChanges = nil }
    while true {
      let version = storage.version
      guard case .proceed(let removals) = try decide(&self) else { return false }
      // The storage isn't locked while `decide` runs, so `decide` runs again if anything changed meanwhile.
      if storage.apply(writes, removing: removals, ifVersionIs: version, by: id) { return true }
    }
  }

  package func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? {
    storage.move(bytes, from: name, by: id) { Self.quarantineName(for: name, at: time, attempt: $0) }
  }

  package func names() -> [String] {
    storage.names.filter(StoreKeyName.isEncoded)
  }

  package mutating func snapshot<Result>(
    _ body: (inout Self) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    takenChanges = []
    defer { takenChanges = nil }
    while true {
      let version = storage.version
      let result = try body(&self)
      if storage.version == version { return result }
    }
  }

  package func startWatching(_ onChange: @escaping @Sendable () -> Void) {
    storage.startWatching(id, onChange)
  }

  package func close() {
    storage.stopWatching(id)
  }

  package mutating func takeExternalChanges() -> ExternalChanges {
    let names = storage.takeChangedNames(id)
    guard let earlier = takenChanges else { return .names(names) }
    takenChanges = earlier + names
    return .names(earlier + names)
  }

  package mutating func erase(_ isErased: (StoredItem) -> Bool) {
    while true {
      let version = storage.version
      let allNames = storage.names
      var keys = StoredItemKeys()
      for name in allNames { keys.add(name) { storage[name] ?? Data() } }
      let names = allNames.filter { [storage] name in
        isErased(StoredItem(name: name, keys: keys) { storage[name] ?? Data() })
      }
      // The storage isn't locked while `isErased` runs, so `isErased` runs again if anything changed meanwhile.
      if storage.apply([], removing: names, ifVersionIs: version, by: id) { return }
    }
  }

  package func acquireLock(_ name: String) -> StoreLockResult {
    storage.acquireLock(name)
  }
}
