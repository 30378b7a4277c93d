internal import DataStore
public import Foundation
public import GraphQLClient
public import Multicast
public import Repository

/// The repository of timelines: fetches them, stores them, and broadcasts the stored timelines with the pending likes
/// applied to them.
///
/// A facade of a `SyncedRepository` with a ``MomentsSource``. It has the guarantees of that repository:
/// - **Start**: Observers receive the stored timelines first, including the unsent likes of earlier processes. The
///   repository sends those likes immediately, unless another repository on the store sends them.
/// - **Ordering**: Observers see saves in the order in which the store made them, each at most once, and never an older
///   timeline after a newer one. Saves that the repository processes together may arrive as one.
/// - **Cancellation**: Cancelling a caller ends its call. A request is cancelled when its last caller is cancelled. A
///   like isn't cancelled with its caller.
/// - **Lifetime**: Streams don't keep the repository alive. They finish when it is released. Queued likes stay in the
///   store, and the next repository on the store sends them.
public actor MomentsRepo: MomentsRepoType {
  private nonisolated let timelines: SyncedRepository<MomentsSource>
  private nonisolated let incompleteReplyRelay: MulticastRelay<IncompleteReply>
  private nonisolated let validate: @Sendable (String) throws(StoreError) -> Void

  /// Creates a repository on a data store and two sessions, and starts to send the likes that are queued in the store.
  ///
  /// - Parameters:
  ///   - persistentDataStore: The store that keeps the timelines, and the likes until the server has them.
  ///   - getMomentsByUserIDSession: The session that fetches timelines.
  ///   - updateMomentLikeSession: The session that sends likes. Each like has an idempotency key, which stays the same
  ///     for all attempts.
  ///   - errorCodes: The meanings of the server's error codes, which decide whether a like is sent again after an
  ///     error.
  ///   - pageSize: The maximum number of moments on a page; at least 1.
  ///   - freshness: The rule by which ``refreshMoments(userID:)`` decides whether a stored timeline is fresh.
  ///   - retryPolicy: The number of attempts to send a like, and the delays between them.
  ///   - clock: The clock that measures delays and time limits.
  ///   - now: A closure that returns the current time, for the age of timelines and likes.
  ///   - random: The source of randomness for the delays.
  ///   - network: The monitor that reports whether the network is available.
  ///   - leadership: The rule that decides which of the repositories on one store sends the likes of all of them.
  ///   - eviction: The limits on the number, the size and the idle time of stored timelines; unlimited by default.
  public init(
    persistentDataStore: any PersistentDataStoreType,
    getMomentsByUserIDSession: any GetMomentsByUserIDSessionType,
    updateMomentLikeSession: any UpdateMomentLikeSessionType,
    errorCodes: GraphQLErrorCodes = .standard,
    pageSize: Int = 20,
    freshness: Freshness = Freshness(timeToLive: .seconds(60)),
    retryPolicy: RetryPolicy = RetryPolicy(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date() },
    random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator(),
    network: any NetworkMonitor = ManualNetworkMonitor(),
    leadership: any Leadership = StoreLeadership(),
    eviction: EvictionPolicy = EvictionPolicy()
  ) {
    validate = { userID throws(StoreError) in try persistentDataStore.validate(userID: userID) }
    let source = MomentsSource(
      getMomentsSession: getMomentsByUserIDSession, updateLikeSession: updateMomentLikeSession, errorCodes: errorCodes)
    incompleteReplyRelay = source.incompleteReplies
    timelines = SyncedRepository(
      source,
      store: persistentDataStore,
      configuration: RepositoryConfiguration(
        pageSize: pageSize, freshness: freshness, retryPolicy: retryPolicy, clock: clock, now: now, random: random,
        network: network, leadership: leadership, eviction: eviction))
  }

  /// The events of the repository, such as requests, retries and changes of the queue, for a log or a chart.
  public nonisolated var events: MulticastStream<RepositoryEvent, Never> { timelines.events }

  /// The replies of the server that count although a part of them is missing, with the errors that the server reported.
  ///
  /// For example, a moment without a title because the server failed to read it, or a like whose reply can't be read. A
  /// subscriber receives those that arrive
  /// after it subscribed. One that falls behind by more than 1,024 loses the oldest. The stream finishes when the
  /// repository is released.
  public nonisolated var incompleteReplies: MulticastStream<IncompleteReply, Never> { incompleteReplyRelay.stream }

  /// The likes that the server doesn't have yet, those that it has but the stored timeline doesn't contain yet, and the
  /// refused likes whose error no caller received.
  public nonisolated var mutations: PendingMutations<MomentsSource> { timelines.mutations }

  /// The saved and changed timelines of all users: first the newest one, then later ones in order, each at most once.
  ///
  /// If the newest one isn't known, because the repository hasn't read any timeline yet or that one was removed or
  /// evicted, an observer first receives all stored timelines instead, the newest one last.
  public nonisolated var momentsDetails: ObservedValues<MomentsDetails> { timelines.everyValue }

  /// Returns the saved and changed timelines of one user.
  public nonisolated func momentsDetails(userID: String) -> ObservedValues<MomentsDetails> {
    timelines.values(of: Key(userID))
  }

  /// Returns the loading states of a user's timeline: the current state first, then the newest after each change.
  public nonisolated func loadState(userID: String) -> ObservedValues<MomentsLoadState> {
    .mapping(timelines.states(of: Key(userID)), .latest) { MomentsLoadState($0) }
  }

  /// Returns the pending likes of a user: the current ones first, then the newest after each change.
  public nonisolated func pendingLikes(userID: String) -> ObservedValues<[String: Bool]> {
    .mapping(timelines.pendingMutations(of: Key(userID)), .latest) { likes in
      likes.reduce(into: [:]) { $0[$1.momentID] = $1.isLiked }
    }
  }

  /// Fetches the complete timeline of a user with one request, and saves it once.
  public func getMoments(userID: String) async throws(MomentsRepoError) {
    try await withKey(of: userID) { key async throws(RepositoryError<APISessionError>) in
      try await timelines.reloadLoadedPages(key)
    }
  }

  /// Fetches the timeline of a user unless the stored one is fresh.
  ///
  /// Observers see the stored timeline during the request. Appending a next page doesn't make a timeline fresh. After a
  /// relaunch, the age of a timeline counts from its last save.
  public func refreshMoments(userID: String) async throws(MomentsRepoError) {
    try await withKey(of: userID) { key async throws(RepositoryError<APISessionError>) in
      try await timelines.refreshLoadedPages(key)
    }
  }

  /// Fetches the newest page of a user's timeline, and joins it to the stored pages without a gap.
  ///
  /// Concurrent calls for the same user share a request.
  public func reloadMoments(userID: String) async throws(MomentsRepoError) {
    try await withKey(of: userID) { key async throws(RepositoryError<APISessionError>) in
      try await timelines.reload(key)
    }
  }

  /// Fetches the page after the last stored moment of a user's timeline, and appends it without duplicates.
  ///
  /// After a failure, the next call fetches the same page. If the server refuses the page permanently, for example
  /// because the last stored moment was deleted, the next ``reloadMoments(userID:)`` replaces all stored pages with as
  /// many of the newest moments. Later calls of this method continue after them.
  public func loadMoreMoments(userID: String) async throws(MomentsRepoError) {
    try await withKey(of: userID) { key async throws(RepositoryError<APISessionError>) in
      try await timelines.loadMore(key)
    }
  }

  /// Sets whether a user likes a moment.
  ///
  /// Every observer sees the like at once. The repository then stores it, sends it, and confirms it with the timeline
  /// that the server returns. A user's likes are sent in the order in which they were made.
  ///
  /// - Returns: ``MomentLikeOutcome/confirmed`` if the server has the like and a timeline that contains it is durable,
  ///   or ``MomentLikeOutcome/queued`` if the like is durable and has to wait.
  /// - Throws: A ``MomentsRepoError``. The like is rolled back if the server refuses it, if the retry policy allows no
  ///   further attempt, if the store can't write it, or if it is cancelled through ``mutations``.
  ///   ``MomentsRepoError/cancelled`` is thrown in the last case, and if the calling task is cancelled, which doesn't
  ///   cancel the like.
  @discardableResult
  public func updateLike(
    isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(MomentsRepoError) -> MomentLikeOutcome {
    let like = MomentLike(userID: userID, momentID: momentID, isLiked: isLiked)
    let result = try await withKey(of: userID) { key async throws(RepositoryError<APISessionError>) in
      try await timelines.perform(like, on: key)
    }
    // A like can't conflict with a timeline, so the only other result is `queued`.
    return result == .confirmed ? .confirmed : .queued
  }

  /// Immediately sends the waiting likes, including those that wait for a sign-in.
  ///
  /// Call it when the network is available again. After a sign-in, call ``credentialsChanged(userID:)`` instead, which
  /// also notifies the other repositories on the store. A delay that the server requested, such as with `Retry-After`,
  /// is still respected.
  public func retryLikes() async {
    await timelines.resumeAll()
  }

  /// Suspends the repository before the system suspends or ends the process, so that it holds no lock meanwhile; see
  /// `SyncedRepository.suspend()`.
  ///
  /// Likes that are made meanwhile are stored. The call waits at most two and a half seconds for the server, and for the
  /// calls of the store that are in progress. Cancelling the calling task has no effect.
  public func suspend() async {
    await timelines.suspend()
  }

  /// Ends ``suspend()``, and sends the likes that are stored.
  public func resume() async {
    await timelines.resume()
  }

  /// Sends the stored likes, for example while the system lets the app work in the background; see
  /// `SyncedRepository.drain(within:)`.
  ///
  /// - Parameter duration: The time after which the call ends.
  /// - Returns: Whether likes are left, and why.
  public func drain(within duration: Duration) async -> DrainResult {
    await timelines.drain(within: duration)
  }

  /// Resumes sending the likes of a user after a sign-in, and makes the repository usable for the user again after a
  /// sign-out.
  ///
  /// Every repository on the store is notified.
  public func credentialsChanged(userID: String) async {
    await timelines.credentialsChanged(userID: userID)
  }

  /// Signs a user out, and erases the user's timeline and likes in every process on the store.
  ///
  /// Until ``credentialsChanged(userID:)`` is called, calls that fetch or change the user's timeline throw
  /// ``MomentsRepoError/signedOut``. See `SyncedRepository.signOut(userID:unsent:)`.
  ///
  /// - Parameters:
  ///   - userID: The id of the user.
  ///   - policy: The treatment of likes that the server doesn't have.
  /// - Throws: A `SignOutError`.
  public func signOut(userID: String, unsent policy: UnsentPolicy) async throws(SignOutError) {
    try await timelines.signOut(userID: userID, unsent: policy)
  }

  /// Returns a report of the repository's state and activity, for a log or a bug report.
  public func report() async -> RepositoryReport {
    await timelines.report()
  }

  private typealias Key = MomentsSource.Key

  /// Checks a user's id, calls `body` with the key of the user's timeline, and converts the errors.
  private func withKey<Result: Sendable>(
    of userID: String, _ body: (Key) async throws(RepositoryError<APISessionError>) -> Result
  ) async throws(MomentsRepoError) -> Result {
    do throws(StoreError) {
      try validate(userID)
    } catch {
      throw .store(error)
    }
    do throws(RepositoryError<APISessionError>) {
      return try await body(Key(userID))
    } catch {
      throw MomentsRepoError(error)
    }
  }
}

extension MomentsLoadState {
  init(_ state: RepositoryState<MomentsDetails, RepositoryError<APISessionError>>) {
    let loaded = state.value.map {
      // The age of a timeline counts from `fetchedAt`, which is the time of its last save if the time of its fetch
      // isn't known. `fetchedAt` is `nil` only if nothing is stored. No timeline is then visible, so the default isn't
      // used.
      LoadedValue($0, savedAt: state.fetchedAt ?? .distantPast, isPending: state.isPending)
    }
    if state.isLoading || state.isLoadingMore {
      self = .loading(previous: loaded)
    } else if let failure = state.failure {
      self = .failed(MomentsRepoError(failure), previous: loaded)
    } else {
      self = loaded.map { .loaded($0) } ?? .idle
    }
  }
}
