public import DataStore
public import Repository

/// A description of a source and a store under test: how to create them, and which mutations to make.
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
  /// The type of the server that the source uses.
  public typealias Server = InMemoryServer<Source.Key, Source.Value, Source.Mutation>

  /// A function that opens a store; each call returns another store object for the same data.
  public typealias Place = @Sendable () async throws -> any KeyValueStore

  /// The key of the value that the checks use.
  public let key: Source.Key

  /// The initial value on the server.
  public let initial: Source.Value

  /// The mutations that the checks make.
  ///
  /// There must be at least three. Each mutation must be possible regardless of which others were applied before it. It
  /// must have an effect, and not undo the effect of another mutation. If values are loaded in pages, all changes must
  /// be visible on the newest page.
  public let mutations: [Source.Mutation]

  /// Creates a source whose requests reach the server over the network.
  ///
  /// If the network throws ``SimulatedNetwork/Failure/unreachable``, the source must throw a failure whose disposition
  /// is `FailureDisposition.retryLater(after:)`. For ``SimulatedNetwork/Failure/noReply``, the disposition must be
  /// `FailureDisposition.unknownOutcome`.
  public let makeSource: @Sendable (Server, SimulatedNetwork) -> Source

  /// Creates an empty place, such as a new folder, and returns a function that opens stores in it.
  public let makePlace: @Sendable () async throws -> Place

  /// The time after which an unfinished check fails.
  public let timeLimit: Duration

  /// Creates a harness.
  ///
  /// - Parameters:
  ///   - key: The key of the value that the checks use.
  ///   - initial: The initial value on the server.
  ///   - mutations: The mutations that the checks make; see ``mutations``.
  ///   - timeLimit: The time after which an unfinished check fails. The default is long enough for a check that runs
  ///     beside many other tests.
  ///   - makeSource: A closure that creates a source; see ``makeSource``.
  ///   - makePlace: A closure that creates an empty place, and returns a function that opens stores in it.
  public init(
    key: Source.Key, initial: Source.Value, mutations: [Source.Mutation], timeLimit: Duration = .seconds(300),
    makeSource: @escaping @Sendable (Server, SimulatedNetwork) -> Source,
    makePlace: @escaping @Sendable () async throws -> Place
  ) {
    precondition(mutations.count >= 3, "RepositoryHarness: at least 3 mutations are required, not \(mutations.count).")
    self.key = key
    self.initial = initial
    self.mutations = mutations
    self.timeLimit = timeLimit
    self.makeSource = makeSource
    self.makePlace = makePlace
  }
}
