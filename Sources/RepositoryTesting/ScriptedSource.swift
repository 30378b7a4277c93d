public import Repository

/// A mutable source that consists of closures, for tests.
public struct ScriptedSource<
  Key: RepositoryKey, Value: Codable & Equatable & Sendable, Mutation: RepositoryMutation<Value>,
  Failure: Error & Sendable
>: MutableSource {
  /// The name of the store's collection of the values.
  public let name: String

  private let onFetch: @Sendable (Key) async throws(Failure) -> Value
  private let onSend: @Sendable (Mutation, Key, MutationID) async throws(Failure) -> MutationReply<Value>
  private let dispositionOfFailure: @Sendable (Failure) -> FailureDisposition
  private let isKeyPinned: @Sendable (Key) -> Bool
  private let lane: @Sendable (Mutation, Key) -> String

  /// Creates a source.
  ///
  /// - Parameters:
  ///   - name: The name of the store's collection of the values.
  ///   - fetch: A closure that fetches the value of a key.
  ///   - send: A closure that sends a mutation.
  ///   - disposition: A closure that returns the meaning of a failure.
  ///   - isPinned: A closure that returns whether the value of a key must not be evicted.
  ///   - lane: A closure that returns the ordering key of a mutation.
  public init(
    _ name: String,
    fetch: @escaping @Sendable (Key) async throws(Failure) -> Value,
    send: @escaping @Sendable (Mutation, Key, MutationID) async throws(Failure) -> MutationReply<Value>,
    disposition: @escaping @Sendable (Failure) -> FailureDisposition = { _ in .retryLater() },
    isPinned: @escaping @Sendable (Key) -> Bool = { _ in false },
    lane: @escaping @Sendable (Mutation, Key) -> String = { $1.storeID }
  ) {
    self.name = name
    onFetch = fetch
    onSend = send
    dispositionOfFailure = disposition
    isKeyPinned = isPinned
    self.lane = lane
  }

  /// Fetches a value.
  public func fetch(_ key: Key) async throws(Failure) -> Value {
    try await onFetch(key)
  }

  /// Sends a mutation.
  public func send(_ mutation: Mutation, to key: Key, id: MutationID) async throws(Failure) -> MutationReply<Value> {
    try await onSend(mutation, key, id)
  }

  /// Returns the meaning of a failure.
  public func disposition(of failure: Failure) -> FailureDisposition { dispositionOfFailure(failure) }

  /// Returns whether the value of a key must not be evicted.
  public func isPinned(_ key: Key) -> Bool { isKeyPinned(key) }

  /// Returns the ordering key of a mutation, which names its lane.
  public func orderingKey(of mutation: Mutation, on key: Key) -> String { lane(mutation, key) }
}
