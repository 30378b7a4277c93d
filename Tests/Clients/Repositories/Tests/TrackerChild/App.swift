internal import DataStore
internal import Foundation
internal import IssueTracker
internal import Multicast
internal import Repository

/// The repositories of the app, on one store.
struct App: Sendable {
  static let project = "moments"

  let client: TrackerClient
  let issues: SyncedRepository<IssuesSource>
  let details: SyncedRepository<IssueDetailSource>

  init(server: URL, folder: URL) {
    client = TrackerClient(server: server, timeout: .seconds(2))
    let store = FileStore(folder: folder)
    let configuration = RepositoryConfiguration(
      freshness: Freshness(timeToLive: .zero),
      retryPolicy: RetryPolicy(base: .milliseconds(5), cap: .milliseconds(50)))
    issues = SyncedRepository(IssuesSource(client), store: store, configuration: configuration)
    details = SyncedRepository(IssueDetailSource(client), store: store, configuration: configuration)
  }

  /// Signs in whenever the server has rejected the token, in place of a user at a sign-in screen.
  func keepSignedIn() async {
    for await isSignedIn in client.session.isSignedIn where !isSignedIn {
      while !Task.isCancelled, !(await attempt { try await client.signIn(as: "ann") }) {}
      await issues.credentialsChanged(userID: nil)
      await details.credentialsChanged(userID: nil)
    }
  }

  /// Runs an operation that may fail, and returns whether it has succeeded.
  @discardableResult
  func attempt(_ operation: () async throws -> Void) async -> Bool {
    do {
      try await operation()
      return true
    } catch {
      return false
    }
  }

  // MARK: - Queues

  func queuedMarks() async throws -> [String] {
    try await issues.mutations.list().map(\.mutation.mark) + details.mutations.list().map(\.mutation.mark)
  }

  /// Removes the changes that the server didn't accept, and sends those again that were given up.
  ///
  /// - Returns: Whether changes are sent again.
  func decide() async throws -> Bool {
    let areIssuesSent = try await Self.decide(issues.mutations, \.mark)
    let areDetailsSent = try await Self.decide(details.mutations, \.mark)
    return areIssuesSent || areDetailsSent
  }

  private static func decide<Source: MutableSource>(
    _ mutations: PendingMutations<Source>, _ mark: (Source.Mutation) -> String
  ) async throws -> Bool {
    var isSentAgain = false
    for item in try await mutations.list() {
      switch item.standing {
      case .waiting, .inFlight, .needsSignIn: continue
      case .refused("\(TrackerError.missing)"): say(["dropped", mark(item.mutation), "missing"])
      case .conflicted(let conflict): say(["dropped", mark(item.mutation), "conflict:", conflict.reason])
      case .refused:
        // The change was given up, because the process was killed in each of several attempts to send it.
        say(["requeued", mark(item.mutation)])
        try await mutations.requeue(item.id)
        isSentAgain = true
        continue
      }
      try await mutations.discard(item.id)
    }
    return isSentAgain
  }

  // MARK: - Delivering

  /// Waits until all changes are delivered, and prints the whole list, and some issues.
  func deliver(details ids: [String]) async throws {
    repeat {
      try await issues.waitForPendingMutations()
      try await details.waitForPendingMutations()
    } while try await decide()
    say(["pending"] + (try await queuedMarks()))
    while !(await attempt { try await issues.reloadLoadedPages(Self.project) }) {}
    for await state in issues.states(of: Self.project).buffering(.latest) where state.value != nil {
      guard state.hasMore else {
        say(["final", try Self.json(state.value?.elements)])
        break
      }
      await attempt { try await issues.loadMore(Self.project) }
    }
    // An issue that was deleted can't be loaded.
    for id in ids where await attempt({ try await details.reload(id) }) {
      for await detail in details.values(of: id) {
        say(["detail", try Self.json(detail)])
        break
      }
    }
  }

  private static func json(_ value: some Encodable) throws -> String {
    String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
  }
}

extension IssuesSource.Mutation {
  /// A text that no other change has.
  var mark: String {
    switch self {
    case .create(let issue): issue.id
    case .rename(_, let title): title
    case .setState(_, _, let reason): reason
    case .delete(let id): "delete-\(id)"
    }
  }
}

extension IssueDetailSource.Mutation {
  /// A text that no other change has.
  var mark: String {
    switch self {
    case .comment(let comment): comment.id
    case .describe(let body, _): body
    }
  }
}
