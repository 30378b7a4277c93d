/// The source of a ``SyncedRepository``'s values: an adapter between the repository and a client of a server.
///
/// A source makes one request for each fetch and for each attempt to send a mutation. It is stateless: the repository
/// stores the values, orders the requests, and decides which replies to store.
///
/// ```swift
/// struct ProfileSource: RepositorySource {
///   let client: any ProfileClient
///   let name = "profile"
///
///   func fetch(_ userID: String) async throws(ClientError) -> Profile {
///     try await client.profile(of: userID)
///   }
/// }
/// ```
///
/// Conform to ``PagedSource`` if values are loaded in pages, and to ``MutableSource`` if the app changes them.
public protocol RepositorySource<Key, Value>: Sendable {
  /// The type of the keys.
  associatedtype Key: RepositoryKey

  /// The type of the fetched, stored and observed values.
  associatedtype Value: Codable & Equatable & Sendable

  /// The error of a failed request.
  associatedtype Failure: Error & Sendable

  /// The type of the mutations; ``NoMutation`` for a read-only source.
  associatedtype Mutation: RepositoryMutation<Value> = NoMutation<Value>

  /// The name of the store's collection of the values.
  ///
  /// The repository keeps its own records in collections whose names begin with this name and a period, for example
  /// `profile.mutations`. No repository of another source may use the same names on the same store.
  var name: String { get }

  /// Fetches a value.
  ///
  /// Callers of the repository that load the same value at the same time share one request. Its task is cancelled when
  /// the last of these callers is cancelled. An error that the request then throws counts as the cancellation.
  func fetch(_ key: Key) async throws(Failure) -> Value

  /// Returns the meaning of an error for the repository.
  ///
  /// Decide by the type of the error, not by its text. A ``MutableSource`` must implement this function, because only
  /// the source knows which errors mean that the server may have applied a mutation. For a read-only source, the
  /// default implementation returns ``FailureDisposition/retryLater(after:)``.
  func disposition(of failure: Failure) -> FailureDisposition

  /// Returns whether the value of a key must stay in the store, regardless of the ``EvictionPolicy``.
  ///
  /// The repository calls this function when it evicts values, for example when a value is no longer in use and the
  /// stored values exceed the policy's limits. The default implementation returns `false`.
  func isPinned(_ key: Key) -> Bool
}

extension RepositorySource where Mutation == NoMutation<Value> {
  /// Returns ``FailureDisposition/retryLater(after:)``.
  public func disposition(of failure: Failure) -> FailureDisposition { .retryLater() }
}

extension RepositorySource {
  /// Returns `false`.
  public func isPinned(_ key: Key) -> Bool { false }
}

/// The meaning of a failed request for the repository.
///
/// The cases say what happens to a mutation, which is sent again only as often as the ``RetryPolicy`` allows. For a
/// fetch, only two things matter: whether the case proves that the server has answered, and whether the server refused
/// the request permanently.
public enum FailureDisposition: Hashable, Sendable {
  /// The server certainly didn't apply the mutation.
  ///
  /// The mutation is sent again under the same id. If the server requested a delay, `after` is that delay, and the
  /// mutation isn't sent earlier.
  case retryLater(after: Duration? = nil)

  /// It isn't known whether the server applied the mutation: the connection failed, or the reply couldn't be read.
  ///
  /// The mutation is sent again under the same id. The reply to that attempt isn't stored, because it may repeat the
  /// server's reply to an earlier attempt. The value is fetched instead.
  ///
  /// The delays between the attempts grow. A successful fetch ends only the first of them, because the server may have
  /// been reached all along. If the server requested a delay, `after` is that delay, and the mutation isn't sent
  /// earlier.
  case unknownOutcome(after: Duration? = nil)

  /// The server requires the user to sign in again.
  ///
  /// All mutations of that user wait for ``SyncedRepository/credentialsChanged(userID:)``. The attempt isn't counted.
  case needsSignIn

  /// The change isn't possible on the server's value.
  ///
  /// The mutation waits for ``PendingMutations/resolve(_:_:)``.
  case conflict

  /// The server refused the mutation permanently.
  ///
  /// The mutation is rolled back.
  case refused

  /// It isn't known whether the server applied the mutation, and it requested no delay.
  public static var unknownOutcome: Self { .unknownOutcome(after: nil) }

  /// Whether the failure proves that the server has answered.
  var isAnswer: Bool {
    switch self {
    case .needsSignIn, .conflict, .refused, .retryLater(_?), .unknownOutcome(_?): true
    case .unknownOutcome(nil), .retryLater(nil): false
    }
  }
}

/// A source that consists of a closure, for a read-only repository.
///
/// ``SyncedRepository/init(_:store:configuration:fetch:)`` creates it.
public struct FetchSource<Key: RepositoryKey, Value: Codable & Equatable & Sendable, Failure: Error & Sendable>:
  RepositorySource
{
  /// The name of the store's collection of the values.
  public let name: String

  private let fetchValue: @Sendable (Key) async throws(Failure) -> Value

  /// Creates a source.
  ///
  /// - Parameters:
  ///   - name: The name of the store's collection of the values.
  ///   - fetch: A closure that fetches the value of a key.
  public init(_ name: String, fetch: @escaping @Sendable (Key) async throws(Failure) -> Value) {
    self.name = name
    fetchValue = fetch
  }

  /// Fetches a value.
  public func fetch(_ key: Key) async throws(Failure) -> Value {
    try await fetchValue(key)
  }
}
