/// The source of a ``SyncedRepository``'s values: an adapter between the repository and a client of a server.
///
/// Each call of a source makes one request. A source is stateless: storing, ordering and deciding is the repository's
/// work.
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

  /// The collection of the values in the store.
  ///
  /// The repository keeps its own records in collections whose names begin with this name and a period, for example
  /// `profile.mutations`. No repository of another source may use the same names on the same store.
  var name: String { get }

  /// Fetches a value.
  ///
  /// The repository makes one request for all concurrent callers of the same value, and cancels its task when the last
  /// of them is cancelled. An error that a cancelled task throws counts as the cancellation.
  func fetch(_ key: Key) async throws(Failure) -> Value

  /// Returns the meaning of an error for the repository.
  ///
  /// Decide by the type of the error, not by its text. The default implementation returns
  /// ``FailureDisposition/retryLater(after:)``.
  func disposition(of failure: Failure) -> FailureDisposition

  /// Returns whether the value of a key must stay in the store, regardless of the ``EvictionPolicy``.
  ///
  /// The repository calls this function when it evicts values, for example when a value is no longer in use and the
  /// stored values exceed the policy's limits. The default implementation returns `false`.
  func isPinned(_ key: Key) -> Bool
}

extension RepositorySource {
  /// Returns ``FailureDisposition/retryLater(after:)``.
  public func disposition(of failure: Failure) -> FailureDisposition { .retryLater() }

  /// Returns `false`.
  public func isPinned(_ key: Key) -> Bool { false }
}

/// The meaning of a failed request for the repository.
///
/// The cases describe a mutation, which is sent again only as often as the ``RetryPolicy`` allows. For a fetch, only
/// two things matter: whether the server has answered, and whether the server refused the request permanently.
public enum FailureDisposition: Hashable, Sendable {
  /// The server certainly didn't apply the mutation. It is sent again under the same id, but not before `after` has
  /// elapsed if the server requested a delay.
  case retryLater(after: Duration? = nil)

  /// It isn't known whether the server applied the mutation: the connection failed, or the reply couldn't be read.
  ///
  /// The mutation is sent again under the same id. The reply to a later attempt may repeat an older one, so a fetched
  /// value determines what is stored.
  case unknownOutcome

  /// The server requires the user to sign in again.
  ///
  /// All mutations of that user wait for ``SyncedRepository/credentialsChanged(userID:)``. The attempt isn't counted.
  case needsSignIn

  /// The change isn't possible on the server's value. The mutation waits for ``PendingMutations/resolve(_:_:)``.
  case conflict

  /// The server refused the mutation permanently. It is rolled back.
  case refused

  /// Whether the failure proves that the server was reached.
  var isAnswer: Bool {
    switch self {
    case .needsSignIn, .conflict, .refused, .retryLater(_?): true
    case .unknownOutcome, .retryLater(nil): false
    }
  }
}

/// A source that consists of a closure, for a read-only repository.
///
/// ``SyncedRepository/init(_:store:configuration:fetch:)`` creates it.
public struct FetchSource<Key: RepositoryKey, Value: Codable & Equatable & Sendable, Failure: Error & Sendable>:
  RepositorySource
{
  /// The collection of the values in the store.
  public let name: String

  private let request: @Sendable (Key) async throws(Failure) -> Value

  /// Creates a source.
  ///
  /// - Parameters:
  ///   - name: The collection of the values in the store.
  ///   - fetch: A closure that fetches the value of a key.
  public init(_ name: String, fetch: @escaping @Sendable (Key) async throws(Failure) -> Value) {
    self.name = name
    request = fetch
  }

  /// Fetches a value.
  public func fetch(_ key: Key) async throws(Failure) -> Value {
    try await request(key)
  }
}
