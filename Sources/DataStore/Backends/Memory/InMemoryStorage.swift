public import Foundation
internal import Multicast

/// Bytes in memory that outlive the stores over them.
///
/// Like the folder of a file store, the storage can be read and changed without a store, so a test can corrupt a value.
/// A store notices such a change at its next call for the key. If the key or its collection is observed, the store
/// notices a change by another store immediately.
public final class InMemoryStorage: Sendable {
  /// A store that is notified when other stores change the storage.
  private struct Watcher {
    /// The names that other stores have changed since the last call of `takeChangedNames(_:)`.
    var changedNames: [String] = []
    let onChange: @Sendable () -> Void
  }

  private struct Contents {
    var bytes: [String: Data] = [:]
    /// The number of changes so far.
    var version: UInt64 = 0
    var watchers: [ObjectIdentifier: Watcher] = [:]
    var lockedNames: Set<String> = []

    /// Records a change that a store made.
    ///
    /// - Returns: The closures to call once `contents` is unlocked.
    mutating func recordChange(of names: [String], by writer: ObjectIdentifier) -> [@Sendable () -> Void] {
      version += 1
      if watchers.isEmpty { return [] }
      var wakes: [@Sendable () -> Void] = []
      for id in watchers.keys where id != writer {
        watchers[id]!.changedNames += names
        wakes.append(watchers[id]!.onChange)
      }
      return wakes
    }
  }

  private let contents = Lock(Contents())
  /// Sends an element each time a ``StoreLock`` of this storage is released.
  private let lockReleases = MulticastRelay<Void>(buffering: .latest)

  /// Creates an empty storage.
  public init() {}

  /// The bytes under a name, or `nil` if there are none.
  ///
  /// A name is either an encoded ``StoreKeyName``, or the name of one part of a ``PartitionedValue`` (see
  /// ``StoreBackend``), or a name that ``StoreEvent/valueQuarantined(_:movedTo:reason:)`` has reported.
  public subscript(name: String) -> Data? {
    get { contents.withLock { $0.bytes[name] } }
    set {
      // Notifies no store: this simulates corruption, which the media of other backends don't report either.
      contents.withLock {
        $0.bytes[name] = newValue
        $0.version += 1
      }
    }
  }

  /// All names, in no particular order.
  ///
  /// - Complexity: O(*n*), where *n* is the number of names.
  public var names: [String] { contents.withLock { Array($0.bytes.keys) } }

  /// A number that increases with each change.
  var version: UInt64 { contents.withLock { $0.version } }

  /// Makes all changes, unless anything has changed since `version`.
  ///
  /// - Returns: Whether the changes were made.
  func apply(
    _ writes: [StoreWrite], removing names: [String], ifVersionIs version: UInt64, by writer: ObjectIdentifier
  ) -> Bool {
    let wakes: [@Sendable () -> Void]? = contents.withLock { contents in
      guard contents.version == version else { return nil }
      for name in names { contents.bytes[name] = nil }
      for write in writes { contents.bytes[write.name] = write.bytes }
      return contents.recordChange(of: names + writes.map(\.name), by: writer)
    }
    guard let wakes else { return false }
    for wake in wakes { wake() }
    return true
  }

  /// Moves bytes to the first new name that is free.
  ///
  /// - Returns: The new name; `nil` if other bytes or none are stored under the old name.
  func move(
    _ bytes: Data, from name: String, by writer: ObjectIdentifier, to newName: (_ attempt: Int) -> String
  ) -> String? {
    let moved: (newName: String, wakes: [@Sendable () -> Void])? = contents.withLock { contents in
      guard contents.bytes[name] == bytes else { return nil }
      var attempt = 1
      while contents.bytes[newName(attempt)] != nil { attempt += 1 }
      contents.bytes[newName(attempt)] = bytes
      contents.bytes[name] = nil
      return (newName(attempt), contents.recordChange(of: [name], by: writer))
    }
    guard let moved else { return nil }
    for wake in moved.wakes { wake() }
    return moved.newName
  }

  // MARK: - Watching

  /// Starts to notify a store of the changes of other stores.
  ///
  /// - Parameter id: The identity of the store's backend. A change with this `writer` is the store's own.
  func startWatching(_ id: ObjectIdentifier, _ onChange: @escaping @Sendable () -> Void) {
    let watcher = Watcher(onChange: onChange)
    contents.withLock { $0.watchers[id] = watcher }
  }

  func stopWatching(_ id: ObjectIdentifier) {
    let watcher = contents.withLock { $0.watchers.removeValue(forKey: id) }
    // The closure is released here, outside the lock, because its release may run code that uses the storage.
    _ = consume watcher
  }

  /// Returns the names that other stores have changed since the last call.
  ///
  /// A name that was changed twice is returned twice.
  func takeChangedNames(_ id: ObjectIdentifier) -> [String] {
    contents.withLock { contents in
      defer { contents.watchers[id]?.changedNames = [] }
      return contents.watchers[id]?.changedNames ?? []
    }
  }

  // MARK: - Locking

  func acquireLock(_ name: String) -> StoreLockResult {
    guard contents.withLock({ $0.lockedNames.insert(name).inserted }) else {
      return .held(releases: lockReleases.stream)
    }
    return .acquired(
      StoreLock {
        self.contents.withLock { _ = $0.lockedNames.remove(name) }
        self.lockReleases.send(())
      })
  }
}
