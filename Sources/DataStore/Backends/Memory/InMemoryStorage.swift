public import Foundation
internal import Multicast

/// Bytes in memory, which outlive the stores over them.
///
/// Like the folder of a file store it can be read and changed from outside, so a test can corrupt a value. A store
/// notices such changes at its next call, and those of another store at once.
public final class InMemoryStorage: Sendable {
  /// A store that is notified of the changes of others.
  private struct Watcher {
    /// What others have changed since it asked last.
    var names: [String] = []
    let onChange: @Sendable () -> Void
  }

  private struct Contents {
    var bytes: [String: Data] = [:]
    /// Counts changes.
    var version: UInt64 = 0
    var watchers: [ObjectIdentifier: Watcher] = [:]
    var lockedNames: Set<String> = []

    /// Records a change of a store.
    ///
    /// - Returns: What to call, as soon as nothing is locked.
    mutating func change(_ names: [String], by writer: ObjectIdentifier) -> [@Sendable () -> Void] {
      version += 1
      if watchers.isEmpty { return [] }
      var wakes: [@Sendable () -> Void] = []
      for watcher in watchers.keys where watcher != writer {
        watchers[watcher]!.names += names
        wakes.append(watchers[watcher]!.onChange)
      }
      return wakes
    }
  }

  private let contents = Lock(Contents())
  private let lockReleases = MulticastRelay<Void>(buffering: .latest)

  /// Creates an empty storage.
  public init() {}

  /// The bytes under a name, or `nil`.
  ///
  /// A name is an encoded ``StoreKeyName``, or one that ``StoreEvent/valueQuarantined(_:movedTo:reason:)`` reported.
  public subscript(name: String) -> Data? {
    get { contents.withLock { $0.bytes[name] } }
    set {
      contents.withLock {
        $0.bytes[name] = newValue
        $0.version += 1
      }
    }
  }

  /// All names, in no order.
  public var names: [String] { contents.withLock { Array($0.bytes.keys) } }

  /// Differs from an earlier value if anything was changed since.
  var version: UInt64 { contents.withLock { $0.version } }

  /// Makes all changes, unless anything was changed since `version`.
  func apply(
    _ writes: [StoreWrite], removing names: [String], ifVersionIs version: UInt64, by writer: ObjectIdentifier
  ) -> Bool {
    let wakes: [@Sendable () -> Void]? = contents.withLock { contents in
      guard contents.version == version else { return nil }
      for name in names { contents.bytes[name] = nil }
      for write in writes { contents.bytes[write.name] = write.bytes }
      return contents.change(names + writes.map(\.name), by: writer)
    }
    guard let wakes else { return false }
    for wake in wakes { wake() }
    return true
  }

  /// Gives bytes the first new name that is free; `nil` if the old name has other bytes.
  func move(
    _ bytes: Data, from name: String, by writer: ObjectIdentifier, to newName: (_ attempt: Int) -> String
  ) -> String? {
    let moved: (to: String, wakes: [@Sendable () -> Void])? = contents.withLock { contents in
      guard contents.bytes[name] == bytes else { return nil }
      var attempt = 1
      while contents.bytes[newName(attempt)] != nil { attempt += 1 }
      contents.bytes[newName(attempt)] = bytes
      contents.bytes[name] = nil
      return (newName(attempt), contents.change([name], by: writer))
    }
    guard let moved else { return nil }
    for wake in moved.wakes { wake() }
    return moved.to
  }

  // MARK: - Watching

  /// Notifies a store from now on when another one changes something.
  func startWatching(_ watcher: ObjectIdentifier, _ onChange: @escaping @Sendable () -> Void) {
    let watch = Watcher(onChange: onChange)
    contents.withLock { $0.watchers[watcher] = watch }
  }

  func stopWatching(_ watcher: ObjectIdentifier) {
    let watch = contents.withLock { $0.watchers.removeValue(forKey: watcher) }
    // Released here, where nothing is locked.
    _ = consume watch
  }

  /// The names that other stores have changed since the last call.
  func takeChangedNames(_ watcher: ObjectIdentifier) -> [String] {
    contents.withLock { contents in
      defer { contents.watchers[watcher]?.names = [] }
      return contents.watchers[watcher]?.names ?? []
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
