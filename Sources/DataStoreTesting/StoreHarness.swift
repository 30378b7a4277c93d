public import DataStore
public import Foundation

/// A store under test: how to open it, and how to corrupt what it keeps.
///
/// A harness stands for one place, such as one folder, that is empty at first. Make a new one for each check.
///
/// ```swift
/// let storage = InMemoryStorage()
/// let harness = StoreHarness {
///   InMemoryStore(storage: storage)
/// } corrupt: { key in
///   storage[try key.encoded()] = Data("spoiled".utf8)
/// }
/// ```
public struct StoreHarness: Sendable {
  /// Opens a store over the harness's place; called again, it opens another over what the first one left there.
  public let open: @Sendable () async throws -> any KeyValueStore

  /// Replaces what is stored for a key by bytes that can't be decoded, without the store; `nil` if that isn't
  /// possible.
  public let corrupt: (@Sendable (StoreKeyName) async throws -> Void)?

  /// Returns all bytes that the place keeps, and all names, without the store; `nil` if that isn't possible.
  public let contents: (@Sendable () async throws -> [Data])?

  /// How long a check waits for a change before it fails.
  ///
  /// A store that keeps the rules sends its own changes before the call that made them returns.
  public let timeLimit: Duration

  /// Whether the store notices external changes without a call.
  public let isWatched: Bool

  /// Whether the store knows locks.
  public let hasLocks: Bool

  /// Creates a harness.
  ///
  /// - Parameters:
  ///   - timeLimit: How long a check waits for a change before it fails.
  ///   - isWatched: Whether the store notices external changes without a call.
  ///   - hasLocks: Whether the store knows locks.
  ///   - open: Opens a store, always over the same place.
  ///   - contents: Returns all bytes that the place keeps, and all names. All stores are closed then.
  ///   - corrupt: Replaces what is stored for a key by bytes that can't be decoded.
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
