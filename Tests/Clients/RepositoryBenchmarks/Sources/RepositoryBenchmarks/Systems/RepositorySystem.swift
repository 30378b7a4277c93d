internal import DataStore
internal import Repository

/// A repository of one kind of value, as an app would use it.
protocol RepositorySystem<Mutation>: Sendable {
  associatedtype Mutation: RepositoryMutation where Mutation.Value: Codable & Equatable & Sendable
  associatedtype Values: AsyncSequence & Sendable where Values.Element == Mutation.Value, Values.Failure == Never

  /// The name of the system in the tables.
  static var label: String { get }

  /// Creates a system that uses a server and the contents of a store.
  init(_ server: Server<Mutation>, _ store: any KeyValueStore)

  /// Returns the values of a key: the current value first, then every later one.
  func values(of key: String) async throws -> Values

  /// Fetches the value of a key.
  func reload(_ key: String) async throws

  /// Makes a change: shows it, makes it durable, and sends it.
  ///
  /// - Returns: Whether the server has the change. Otherwise it is queued.
  func perform(_ mutation: Mutation, on key: String) async throws -> Bool

  /// Sends all queued changes, and returns when they are durably confirmed.
  ///
  /// At least one change must be queued.
  func deliverAll() async throws

  /// Waits until an attempt to send has failed.
  ///
  /// At least one change must be queued, and the server must not be reachable.
  func waitForFailedAttempt() async
}

extension RepositorySystem {
  /// Returns immediately.
  ///
  /// This suits a system that sends only during calls of its other methods, and thus has no attempt to wait for.
  func waitForFailedAttempt() async {}
}
