internal import DataStore
internal import Repository

/// A repository of one kind of value, as an app would use it.
protocol RepositorySystem<Mutation>: Sendable {
  associatedtype Mutation: RepositoryMutation where Mutation.Value: Codable & Equatable & Sendable
  associatedtype Values: AsyncSequence & Sendable where Values.Element == Mutation.Value, Values.Failure == Never

  /// How the tables name the system.
  static var label: String { get }

  /// Starts on what the store holds.
  init(_ server: Server<Mutation>, _ store: any KeyValueStore)

  /// The values of a key: the stored one with all changes first, then every later one.
  func values(of key: String) async throws -> Values

  /// Fetches the value of a key.
  func reload(_ key: String) async throws

  /// Makes a change: shows it, makes it durable, and sends it.
  ///
  /// - Returns: Whether the server has it; otherwise it waits.
  func perform(_ mutation: Mutation, on key: String) async throws -> Bool

  /// Sends all that waits, and returns when it is confirmed durably.
  ///
  /// At least one change waits when it is called.
  func deliverAll() async throws

  /// Returns when the system doesn't do anything any more until the server can be reached.
  ///
  /// At least one change waited when the system was created.
  func settle() async
}

extension RepositorySystem {
  func settle() async {}
}
