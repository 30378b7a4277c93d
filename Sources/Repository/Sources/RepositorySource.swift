/// Where the values of a ``SyncedRepository`` come from: a server, through a client of yours.
///
/// A source fetches one value. It keeps nothing, decides nothing and orders nothing, because all of that is the
/// repository's work.
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
/// Conform to ``PagedSource`` where values come in pages, and to ``MutableSource`` where the app changes them.
public protocol RepositorySource<Key, Value>: Sendable {
  /// Identifies a value.
  associatedtype Key: RepositoryKey

  /// What is fetched, stored and observed.
  associatedtype Value: Codable & Equatable & Sendable

  /// Why a request failed.
  associatedtype Failure: Error & Sendable

  /// What the app can change; ``NoMutation`` for a source that is only read.
  associatedtype Mutation: RepositoryMutation<Value> = NoMutation<Value>

  /// The collection of the values in the store.
  ///
  /// Mutations that wait are kept in the collection of that name followed by `.mutations`. No other repository of the
  /// same store may have the name.
  var name: String { get }

  /// Fetches a value.
  ///
  /// The repository makes one request for all callers that want the same at the same time, and cancels its task when the
  /// last of them is cancelled. A failure of a cancelled task counts as the cancellation.
  func fetch(_ key: Key) async throws(Failure) -> Value

  /// Returns what a failure means, by its type and never by its text.
  ///
  /// The default implementation returns ``FailureDisposition/retryLater(after:)``.
  func disposition(of failure: Failure) -> FailureDisposition

  /// Returns whether the value of a key stays in the store, whatever the ``EvictionPolicy`` says.
  ///
  /// Asked when room is needed, and when the value's use ends while there is too little. The default implementation returns
  /// `false`.
  func isPinned(_ key: Key) -> Bool
}

extension RepositorySource {
  /// Returns ``FailureDisposition/retryLater(after:)``.
  public func disposition(of failure: Failure) -> FailureDisposition { .retryLater() }

  /// Returns `false`.
  public func isPinned(_ key: Key) -> Bool { false }
}

/// What a failed request means for the repository.
public enum FailureDisposition: Hashable, Sendable {
  /// The server surely didn't make the change. The mutation is sent again under the same id, not before `after` has
  /// passed if the server said so.
  case retryLater(after: Duration? = nil)

  /// Whether the server made the change isn't known: the connection broke, or the reply couldn't be read.
  ///
  /// The mutation is sent again under the same id. A reply to a later attempt may repeat an older one, so a fetched value
  /// decides what is stored.
  case unknownOutcome

  /// The server wants the user to sign in again.
  ///
  /// All mutations of that user wait for ``SyncedRepository/credentialsChanged(userID:)``. The attempt doesn't count.
  case needsSignIn

  /// The change isn't possible on the server's value. The mutation waits for ``PendingMutations/resolve(_:_:)``.
  case conflict

  /// The server will never make the change. The mutation is rolled back.
  case refused

  /// Whether the server was reached for certain.
  var isAnswer: Bool {
    switch self {
    case .needsSignIn, .conflict, .refused, .retryLater(_?): true
    case .unknownOutcome, .retryLater(nil): false
    }
  }
}

/// A source that is one closure, for a repository that is only read.
///
/// ``SyncedRepository/init(_:store:configuration:fetch:)`` makes it.
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
  ///   - fetch: Fetches a value.
  public init(_ name: String, fetch: @escaping @Sendable (Key) async throws(Failure) -> Value) {
    self.name = name
    request = fetch
  }

  /// Fetches a value.
  public func fetch(_ key: Key) async throws(Failure) -> Value {
    try await request(key)
  }
}
