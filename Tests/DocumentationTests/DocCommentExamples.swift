import DataStore
import DataStoreTesting
import Foundation
import Moments
import Multicast
import MulticastTesting
import Repository
import RepositoryTesting
import Testing

/// The code of the documentation comments of the modules other than Repository and RepositoryTesting, copied unchanged
/// so that the compiler checks it.
enum DocCommentExamples {
  enum LoadState: Sendable, Equatable {
    case idle
    case loading
    case loaded
  }

  static func currentValueChannel() -> LoadState {
    let state = CurrentValueChannel<LoadState, Never>(.idle)
    state.send(.loading)
    state.update { $0 = .loaded }
    return state.value
  }

  static func multicastChannel() async {
    let events = MulticastChannel<String, Never>(buffering: .unbounded)
    let subscription = events.stream.subscribe()
    let task = Task { for await event in subscription { print(event) } }
    events.send("opened")
    task.cancel()
    await task.value
  }

  static func multicastStream(_ messages: MulticastChannel<String, Never>, show: (String) -> Void) async {
    for await message in messages.stream {
      show(message)
    }
  }

  struct Socket {
    let messages: AsyncStream<String>
  }

  static func multicastSequence(
    _ socket: Socket, showList: @Sendable (MulticastSequence<AsyncStream<String>>) async -> Void,
    showChart: @Sendable (MulticastSequence<AsyncStream<String>>) async -> Void
  ) async {
    let quotes = socket.messages.multicast(replay: 1, buffering: .latest)
    // Two screens, one connection.
    async let list: Void = showList(quotes)
    async let chart: Void = showChart(quotes)
    _ = await (list, chart)
  }

  static func storeKeyName() throws -> String {
    try StoreKeyName("inbox", id: "Jake/0").encoded()  // "inbox.%4aake%2f0"
  }

  struct TimedStore<Base: KeyValueStore>: ForwardingStore {
    let base: Base
    let log: @Sendable (String) -> Void

    func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
      let start = ContinuousClock.now
      defer { log("The load of \(key) took \(ContinuousClock.now - start).") }
      return try await base.load(key)
    }
  }

  static func storeBatch(_ reply: Inbox, _ queued: StoreKey<Int>, in store: any KeyValueStore) async throws {
    var batch = StoreBatch()
    batch.save(reply, for: .inbox(of: "0"))
    batch.remove(queued)
    try await store.commit(batch)
  }

  struct Message: Codable, Sendable {}

  struct Settings: Codable, Sendable {}

  static func storeFeed(_ store: any KeyValueStore, show: ([StoreFeedChange]) -> Void) async throws {
    let feed = await store.feed()
    try await feed.follow(collection: "inbox", as: Message.self)
    try await feed.follow(StoreKey<Settings>("settings"))
    for await element in feed.elements {
      switch element {
      case .began(_, let changes): show(changes)
      case .committed(let transaction): show(transaction.changes)
      case .caughtUp: break
      }
    }
  }

  static func manualTaskExecutor(_ stream: MulticastStream<Int, Never>, record: @escaping @Sendable (Int) -> Void) {
    let executor = ManualTaskExecutor()
    let reader = Task(executorPreference: executor) { for await value in stream { record(value) } }
    executor.runUntilIdle()  // The reader is suspended in `next()` now.
    reader.cancel()
    executor.runUntilIdle()
  }

  static func storeHarness() -> StoreHarness {
    let storage = InMemoryStorage()
    let harness = StoreHarness {
      InMemoryStore(storage: storage)
    } corrupt: { key in
      storage[try key.encoded()] = Data("corrupt".utf8)
    }
    return harness
  }

  @MainActor
  static func momentsTimelineViewModel(_ viewModel: MomentsTimelineViewModel) -> Screen {
    Screen()
      .task { await viewModel.run() }
      .refreshable { await viewModel.loadItems() }
  }

  /// Stands in for a SwiftUI view, because SwiftUI isn't available on every system.
  @MainActor
  struct Screen {
    func task(_ action: @escaping @MainActor () async -> Void) -> Screen { self }
    func refreshable(_ action: @escaping @MainActor () async -> Void) -> Screen { self }
  }
}

struct Inbox: PartitionedValue {
  var owner: String
  var messages: [String]

  init(head: String, elements: [String]) { (owner, messages) = (head, elements) }
  var head: String { owner }
  var elements: [String] { messages }
}

extension StoreKey where Value == Inbox {
  static func inbox(of userID: String) -> Self { Self("inbox", id: userID) }
}

@Suite struct MyStoreTests {
  private func harness() -> StoreHarness { DocCommentExamples.storeHarness() }

  @Test(arguments: StoreConformance.checks)
  func `My store keeps the rules`(check: StoreConformance.Check) async throws {
    try await check.run(on: harness())
  }
}

/// The code of the documentation comments of Repository, copied unchanged so that the compiler checks it.
enum RepositoryDocCommentExamples {
  typealias Profile = RepositoryExamples.Profile
  typealias Draft = RepositoryExamples.Draft
  typealias ClientError = RepositoryExamples.ClientError
  typealias ProfileClient = RepositoryExamples.Client

  struct CommentsKey: RepositoryKey {
    /// A user's id isn't empty and contains no slash.
    let userID: String?
    let postID: String

    var storeID: String { "\(userID ?? "")/\(postID)" }

    init(userID: String?, postID: String) {
      (self.userID, self.postID) = (userID, postID)
    }

    init?(storeID: String) {
      let parts = storeID.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { return nil }
      self.init(userID: parts[0].isEmpty ? nil : String(parts[0]), postID: String(parts[1]))
    }
  }

  struct ProfileSource: RepositorySource {
    let client: any ProfileClient
    let name = "profile"

    func fetch(_ userID: String) async throws(ClientError) -> Profile {
      try await client.profile(of: userID)
    }
  }

  struct Comment: Codable, Equatable, Identifiable, Sendable {
    let id: String
  }

  enum CommentsMutation: RepositoryMutation {
    case add(Comment)

    func apply(to value: inout [Comment]) throws(MutationConflict) {}
  }

  struct CommentsSource: MutableSource {
    let name = "comments"

    init(_ client: any ProfileClient) {}

    func fetch(_ key: String) async throws(ClientError) -> [Comment] { [] }

    func send(
      _ mutation: CommentsMutation, to key: String, id: MutationID
    ) async throws(ClientError) -> MutationReply<[Comment]> { .done }

    func disposition(of failure: ClientError) -> FailureDisposition { .unknownOutcome }
  }

  struct Message: Codable, Equatable, Identifiable, Sendable {
    let id: String
  }

  protocol MessagesClient: Sendable {
    func messages(in room: String, after cursor: String?, limit: Int) async throws(ClientError) -> Paged<Message>
    func messages(in room: String, before cursor: String, limit: Int) async throws(ClientError) -> Paged<Message>
  }

  struct MessagesSource: BidirectionalPagedSource {
    let client: any MessagesClient
    let name = "messages"

    func fetch(_ room: String, after cursor: String?, limit: Int) async throws(ClientError) -> Paged<Message> {
      try await client.messages(in: room, after: cursor, limit: limit)
    }

    func fetch(_ room: String, before cursor: String, limit: Int) async throws(ClientError) -> Paged<Message> {
      try await client.messages(in: room, before: cursor, limit: limit)
    }

    func cursor(of message: Message) -> String { message.id }
  }

  static func syncedRepository(
    _ client: any ProfileClient, _ store: any KeyValueStore, postID: String, comment: Comment,
    show: ([Comment]) -> Void
  ) async throws {
    let comments = SyncedRepository(CommentsSource(client), store: store)

    for await page in comments.values(of: postID) { show(page) }

    try await comments.reload(postID)
    try await comments.perform(.add(comment), on: postID)
  }

  static func readOnlyRepository(
    _ client: any ProfileClient, _ store: any KeyValueStore, userID: String, show: (Profile) -> Void
  ) async {
    let profiles = SyncedRepository("profile", store: store) { (userID: String) async throws(ClientError) in
      try await client.profile(of: userID)
    }
    for await profile in profiles.values(of: userID) {
      show(profile)
    }
  }

  static func localRepository(_ store: any KeyValueStore, postID: String, show: (Draft) -> Void) async throws {
    let drafts = LocalRepository<String, Draft>("drafts", default: Draft(), store: store)
    try await drafts.update(postID) { $0.text = "On the river" }
    for await draft in drafts.values(of: postID) { show(draft) }
  }

  static func loadingPolicyAndReportAndMonitors(
    _ comments: SyncedRepository<RepositoryExamples.CommentsSource>, postID: String, phase: Phase,
    show: (Paged<RepositoryExamples.Comment>) -> Void
  ) async {
    for await page in comments.values(of: postID, loading: .whileObserved(every: .seconds(30))) { show(page) }

    print(await comments.report())

    let network = ManualNetworkMonitor()
    network.status = .offline

    let activity = ManualActivityMonitor()
    switch phase {
    case .active: activity.activity = .active
    case .background: activity.activity = .background
    default: activity.activity = .inactive
    }

    let result = await comments.drain(within: .seconds(20))
    _ = result
  }

  /// Stands for SwiftUI's `ScenePhase`.
  enum Phase { case active, inactive, background }

  static func presence(
    _ comments: SyncedRepository<RepositoryExamples.CommentsSource>, postID: String,
    show: ([RepositoryExamples.Comment]) -> Void, showPlaceholder: (_ isLoading: Bool) -> Void,
    showFailure: (RepositoryError<RepositoryExamples.ClientError>?) -> Void
  ) async {
    for await state in comments.states(of: postID) {
      switch state.presence {
      case .value(let page): show(page.elements)
      case .nothing: showPlaceholder(state.isLoading)
      case .notRead: showFailure(state.failure)
      }
    }
  }

  static func evictionPolicy(_ client: any ProfileClient, _ store: any KeyValueStore) {
    var configuration = RepositoryConfiguration()
    configuration.eviction = EvictionPolicy(maximumBytes: 50_000_000, idleTime: .seconds(30 * 86_400))
    let comments = SyncedRepository(CommentsSource(client), store: store, configuration: configuration)
    _ = comments
  }

  static func signOut(
    _ comments: SyncedRepository<CommentsSource>, userID: String, askWhetherToLose: (Int) -> Void
  ) async throws {
    do {
      try await comments.signOut(userID: userID, unsent: .send(within: .seconds(10)))
    } catch SignOutError.unsent(let count) {
      askWhetherToLose(count)
    }
  }

  @MainActor
  static func observed(_ comments: SyncedRepository<CommentsSource>, postID: String) async {
    let observed = Observed(comments.values(of: postID))
    await observed.run()  // From a view: .task { await observed.run() }
  }
}

/// The code of the documentation comments of RepositoryTesting, copied unchanged so that the compiler checks it.
enum RepositoryTestingDocCommentExamples {
  typealias Comment = RepositoryExamples.Comment
  typealias CommentsSource = RepositoryExamples.CommentsSource
  typealias Server = InMemoryServer<String, Paged<Comment>, CommentsSource.Mutation>

  struct Note: Sendable {}

  struct NotesServer: Sendable {
    func add(_ note: Note, requestID: String) {}
  }

  struct NotesClient {
    enum ClientError: Error {
      case offline, noReply
    }

    let server: NotesServer
    let network: SimulatedNetwork

    func add(_ note: Note, requestID: String) async throws(ClientError) {
      do {
        try await network.exchange("add") { server.add(note, requestID: requestID) }
      } catch {
        throw error == .unreachable ? .offline : .noReply
      }
    }
  }

  /// A client whose comments all belong to the post with the id `post`.
  struct SimulatedCommentsClient: RepositoryExamples.Client {
    let server: Server
    let network: SimulatedNetwork

    init(_ server: Server, _ network: SimulatedNetwork) {
      (self.server, self.network) = (server, network)
    }

    func comments(
      on postID: String, after cursor: String?, limit: Int
    ) async throws(RepositoryExamples.ClientError) -> RepositoryExamples.CommentsPage {
      try await exchange("page") { [server] in
        let page = server.page(of: postID, after: cursor, limit: limit)
        return .success(.init(comments: page.elements, nextCursor: page.nextCursor))
      }
    }

    func add(
      _ comment: Comment, to postID: String, requestID: String
    ) async throws(RepositoryExamples.ClientError) {
      try await send(.add(comment), requestID)
    }

    func edit(_ id: Comment.ID, text: String, requestID: String) async throws(RepositoryExamples.ClientError) {
      try await send(.edit(id, text: text), requestID)
    }

    func delete(_ id: Comment.ID, requestID: String) async throws(RepositoryExamples.ClientError) {
      try await send(.delete(id), requestID)
    }

    func profile(of userID: String) async throws(RepositoryExamples.ClientError) -> RepositoryExamples.Profile {
      throw .refused
    }

    private func send(
      _ mutation: CommentsSource.Mutation, _ requestID: String
    ) async throws(RepositoryExamples.ClientError) {
      try await exchange("change") { [server] in
        do throws(MutationConflict) {
          _ = try server.apply(mutation, to: "post", id: MutationID(rawValue: requestID))
          return .success(())
        } catch {
          return .failure(.refused)
        }
      }
    }

    private func exchange<Reply: Sendable>(
      _ label: String, _ serve: @escaping @Sendable () -> Result<Reply, RepositoryExamples.ClientError>
    ) async throws(RepositoryExamples.ClientError) -> Reply {
      let reply: Result<Reply, RepositoryExamples.ClientError>
      do throws(SimulatedNetwork.Failure) {
        reply = try await network.exchange(label, serve)
      } catch {
        throw error == .unreachable ? .offline : .lostReply
      }
      return try reply.get()
    }
  }

  static func harness() -> RepositoryHarness<CommentsSource> {
    let (first, second, third) = (Comment(text: "first"), Comment(text: "second"), Comment(text: "third"))
    let harness = RepositoryHarness(
      key: "post", initial: Paged([first, second]),
      mutations: [.add(third), .edit(first.id, text: "new"), .delete(second.id)]
    ) { server, network in
      CommentsSource(SimulatedCommentsClient(server, network))
    } makePlace: {
      let storage = InMemoryStorage()
      return { InMemoryStore(storage: storage) }
    }
    return harness
  }
}

extension RepositoryExamples.CommentsSource {
  init(_ client: any RepositoryExamples.Client) {
    self.init(client: client)
  }
}

@Suite(.timeLimit(.minutes(15))) struct MyRepositoryTests {
  typealias CommentsSource = RepositoryExamples.CommentsSource
  let harness = RepositoryTestingDocCommentExamples.harness()

  @Test(arguments: RepositoryConformance<CommentsSource>.checks)
  func `The comments keep the laws`(check: RepositoryConformance<CommentsSource>.Check) async throws {
    try await check.run(on: harness)
  }
}
