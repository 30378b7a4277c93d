public import DataStore
public import Repository

/// A source and a store under test: how to make them, and what to do with them.
///
/// ```swift
/// let harness = RepositoryHarness(
///   key: "post", initial: Paged([first, second]),
///   mutations: [.add(third), .edit(first.id, text: "new"), .delete(second.id)]
/// ) { server, network in
///   CommentsSource(SimulatedCommentsClient(server, network))
/// } makePlace: {
///   let storage = InMemoryStorage()
///   return { InMemoryStore(storage: storage) }
/// }
/// ```
public struct RepositoryHarness<Source: MutableSource>: Sendable {
  /// The server that the source is to use.
  public typealias Server = InMemoryServer<Source.Key, Source.Value, Source.Mutation>

  /// Opens a store; called again, it opens another over what the first one left.
  public typealias Place = @Sendable () async throws -> any KeyValueStore

  /// The key of the value that the checks use.
  public let key: Source.Key

  /// What the server has under the key at first.
  public let initial: Source.Value

  /// The changes that the checks make.
  ///
  /// There are at least three. Each is possible on the initial value after those before it, has an effect there, and takes
  /// back nothing that another one does. In pages, all that they change is in the newest one.
  public let mutations: [Source.Mutation]

  /// Makes a source whose requests go over the network to the server.
  ///
  /// A failure to send is a failure of the source whose disposition is ``FailureDisposition/retryLater(after:)``, and one
  /// without a reply is ``FailureDisposition/unknownOutcome``.
  public let makeSource: @Sendable (Server, SimulatedNetwork) -> Source

  /// Makes an empty place, such as a new folder, and returns what opens stores over it.
  public let makePlace: @Sendable () async throws -> Place

  /// How long a check waits for what must happen, before it fails.
  public let timeLimit: Duration

  /// Creates a harness.
  ///
  /// - Parameters:
  ///   - key: The key of the value that the checks use.
  ///   - initial: What the server has under the key at first.
  ///   - mutations: The changes that the checks make; see ``mutations``.
  ///   - timeLimit: How long a check waits for what must happen, before it fails.
  ///   - makeSource: Makes a source whose requests go over the network to the server; see ``makeSource``.
  ///   - makePlace: Makes an empty place, and returns what opens stores over it.
  public init(
    key: Source.Key, initial: Source.Value, mutations: [Source.Mutation], timeLimit: Duration = .seconds(60),
    makeSource: @escaping @Sendable (Server, SimulatedNetwork) -> Source,
    makePlace: @escaping @Sendable () async throws -> Place
  ) {
    precondition(mutations.count >= 3, "RepositoryHarness: there are at least 3 mutations, not \(mutations.count).")
    self.key = key
    self.initial = initial
    self.mutations = mutations
    self.timeLimit = timeLimit
    self.makeSource = makeSource
    self.makePlace = makePlace
  }
}
