public import Foundation
internal import Multicast

/// A store that keeps its values in memory: for tests, previews, and whatever need not survive the process.
public typealias InMemoryStore = BackedStore<InMemoryBackend>

extension BackedStore where Backend == InMemoryBackend {
  /// Creates a store in memory.
  ///
  /// - Parameters:
  ///   - storage: Where the bytes are. Hand the same to a second store to play a relaunch.
  ///   - now: Tells the time, for ``StoredValue/savedAt``.
  public init(storage: InMemoryStorage = InMemoryStorage(), now: @escaping @Sendable () -> Date = { Date() }) {
    self.init(backend: InMemoryBackend(storage: storage), now: now)
  }
}

/// Bytes in memory, which outlive the stores over them.
///
/// Like the folder of a file store it may be looked at and changed from outside, so a test can spoil a value. A store
/// sees such changes at its next call.
public final class InMemoryStorage: Sendable {
  private let contents = Lock<[String: Data]>([:])

  /// Creates an empty storage.
  public init() {}

  /// The bytes under a name; nil when there are none.
  ///
  /// A name is an encoded ``StoreKeyName``, or one that ``StoreEvent/corruptValueMovedAside(_:movedTo:reason:)`` told.
  public subscript(name: String) -> Data? {
    get { contents.withLock { $0[name] } }
    set { contents.withLock { $0[name] = newValue } }
  }

  /// All names, in no order.
  public var names: [String] { contents.withLock { Array($0.keys) } }

  /// Moves bytes to the first new name that is free; nil when the old one has others.
  fileprivate func move(_ bytes: Data, from name: String, to newName: (_ attempt: Int) -> String) -> String? {
    contents.withLock { contents in
      guard contents[name] == bytes else { return nil }
      var attempt = 1
      while contents[newName(attempt)] != nil { attempt += 1 }
      contents[newName(attempt)] = bytes
      contents[name] = nil
      return newName(attempt)
    }
  }
}

/// Keeps bytes in an ``InMemoryStorage``.
public struct InMemoryBackend: StoreBackend, Sendable {
  private let storage: InMemoryStorage

  /// Creates a backend over `storage`.
  public init(storage: InMemoryStorage) {
    self.storage = storage
  }

  /// The bytes stored under a name.
  public func read(_ name: String) -> Data? {
    storage[name]
  }

  /// Stores bytes under a name.
  public func write(_ bytes: Data, to name: String) {
    storage[name] = bytes
  }

  /// Removes what is stored under a name.
  public func remove(_ name: String) {
    storage[name] = nil
  }

  /// Keeps the bytes under another name.
  public func setAside(_ bytes: Data, of name: String, at time: Date) -> String? {
    storage.move(bytes, from: name) { Self.asideName(for: name, at: time, attempt: $0) }
  }

  /// All names under which something is stored.
  public func names() -> [String] {
    storage.names.filter { StoreKeyName(encoded: $0) != nil }
  }
}
