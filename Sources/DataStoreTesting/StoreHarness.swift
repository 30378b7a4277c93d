public import DataStore
public import Foundation

/// A store under test: closures that open it, and that corrupt its stored values.
///
/// A harness represents one medium, such as a folder, which is empty at first. Create a new harness for each check.
///
/// ```swift
/// let storage = InMemoryStorage()
/// let harness = StoreHarness {
///   InMemoryStore(storage: storage)
/// } corrupt: { key in
///   storage[try key.encoded()] = Data("corrupt".utf8)
/// }
/// ```
public struct StoreHarness: Sendable {
  /// Opens a store over the harness's medium; each further call opens another store over the same contents.
  public let open: @Sendable () async throws -> any KeyValueStore

  /// Replaces the stored bytes of a key, directly in the medium, with bytes that can't be decoded; `nil` if that isn't
  /// possible.
  public let corrupt: (@Sendable (StoreKeyName) async throws -> Void)?

  /// Returns the names and the bytes of all files, rows or the like in the medium, read directly from it; `nil` if that
  /// isn't possible.
  ///
  /// Without this closure, the checks of erasure don't verify that no bytes of erased values remain.
  public let contents: (@Sendable () async throws -> [Data])?

  /// The longest time that a check waits for a change before it fails.
  ///
  /// If a store keeps the rules, a save or removal sends its change before it returns. Therefore, only a failing check
  /// waits that long.
  public let timeLimit: Duration

  /// Whether the store notices external changes without a call.
  public let isWatched: Bool

  /// Whether the store supports locks.
  public let hasLocks: Bool

  /// Creates a harness.
  ///
  /// - Parameters:
  ///   - timeLimit: The longest time that a check waits for a change before it fails.
  ///   - isWatched: Whether the store notices external changes without a call.
  ///   - hasLocks: Whether the store supports locks.
  ///   - open: Opens a store, always over the same medium.
  ///   - contents: Returns the names and the bytes of all files, rows or the like in the medium; `nil` if that isn't
  ///     possible. A check calls this closure after the last call of its stores.
  ///   - corrupt: Replaces the stored bytes of a key with corrupt ones, which have no right checksum; `nil` if that isn't
  ///     possible.
  public init(
    timeLimit: Duration = .seconds(60), isWatched: Bool = false, hasLocks: Bool = true,
    open: @escaping @Sendable () async throws -> any KeyValueStore,
    contents: (@Sendable () async throws -> [Data])? = nil,
    corrupt: (@Sendable (StoreKeyName) async throws -> Void)? = nil
  ) {
    self.timeLimit = timeLimit
    self.isWatched = isWatched
    self.hasLocks = hasLocks
    self.open = open
    self.contents = contents
    self.corrupt = corrupt
  }
}
