public import DataStore

/// A store under test: how to open it, and how to spoil what it keeps.
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

  /// Replaces what is stored for a key by bytes that are no value, behind the store's back; nil when that is not
  /// possible.
  public let corrupt: (@Sendable (StoreKeyName) async throws -> Void)?

  /// How long a check waits for a change before it fails.
  ///
  /// A store that keeps the rules is never waited for: it sends a change before the call that made it returns.
  public let timeLimit: Duration

  /// Creates a harness.
  ///
  /// - Parameters:
  ///   - timeLimit: How long a check waits for a change before it fails.
  ///   - open: Opens a store, always over the same place.
  ///   - corrupt: Replaces what is stored for a key by bytes that are no value.
  public init(
    timeLimit: Duration = .seconds(10),
    open: @escaping @Sendable () async throws -> any KeyValueStore,
    corrupt: (@Sendable (StoreKeyName) async throws -> Void)? = nil
  ) {
    self.timeLimit = timeLimit
    self.open = open
    self.corrupt = corrupt
  }
}
