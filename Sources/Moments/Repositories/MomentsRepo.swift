internal import DataStore
public import Foundation
internal import GraphQLClient
public import Multicast
public import Repository

/// The repository of timelines: fetches them, keeps them, and broadcasts what is stored with the likes that are pending.
///
/// It is a `SyncedRepository` of a ``MomentsSource``, which makes its promises:
/// - **Start**: What was stored before reaches observers first, with the likes of earlier processes that the server does
///   not have yet. Those are sent at once, unless another process on the store sends them.
/// - **Ordering**: Observers see all saves in the order of the store, each once, and never an older timeline after a
///   newer one.
/// - **Lifetime**: Streams do not keep the repository alive. They finish when it is released. What is queued stays in
///   the store, and the next repository on it sends it.
public actor MomentsRepo: MomentsRepoType {
  private nonisolated let timelines: SyncedRepository<MomentsSource>
  private nonisolated let validate: @Sendable (String) throws(StoreError) -> Void

  /// Creates a repository on a data store and two sessions, and starts to send the likes that are queued in the store.
  ///
  /// - Parameters:
  ///   - persistentDataStore: Where timelines are kept, and likes until the server has them.
  ///   - getMomentsByUserIDSession: Fetches timelines.
  ///   - updateMomentLikeSession: Sends likes, each under an idempotency key that stays the same for all attempts.
  ///   - pageSize: How many moments a page has at most; at least 1.
  ///   - freshness: When ``refreshMoments(userID:)`` takes a stored timeline for good enough.
  ///   - retryPolicy: When a like that could not be sent is tried again.
  ///   - clock: Measures the waits between attempts.
  ///   - now: Returns the present time, for the age of timelines.
  ///   - random: Where the length of the waits comes from.
  ///   - network: Tells when the network comes and goes.
  ///   - leadership: Decides which of the repositories on one store sends the likes of all.
  ///   - eviction: How many timelines the store keeps, and for how long; all by default.
  public init(
    persistentDataStore: any PersistentDataStoreType,
    getMomentsByUserIDSession: any GetMomentsByUserIDSessionType,
    updateMomentLikeSession: any UpdateMomentLikeSessionType,
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
    timelines = SyncedRepository(
      MomentsSource(getMoments: getMomentsByUserIDSession, updateLike: updateMomentLikeSession),
      store: persistentDataStore,
      configuration: RepositoryConfiguration(
        pageSize: pageSize, freshness: freshness, retryPolicy: retryPolicy, clock: clock, now: now, random: random,
        network: network, leadership: leadership, eviction: eviction))
  }

  /// What happens, for a log or a chart: requests, retries, the queue.
  public nonisolated var events: MulticastStream<RepositoryEvent, Never> { timelines.events }

  /// The likes that the server doesn't have yet, and those it refused when no caller waited.
  public nonisolated var mutations: PendingMutations<MomentsSource> { timelines.mutations }

  /// Every timeline that is saved or edited, of any user: the newest first for a new observer, then each one once, in
  /// order.
  ///
  /// An observer of an empty store waits for the first save. Nothing is dropped however slow the observer is; one that
  /// needs only the newest uses `buffering(.latest)`.
  public nonisolated var momentsDetails: ObservedValues<MomentsDetails> { timelines.everyValue }

  /// As ``momentsDetails``, of one user.
  public nonisolated func momentsDetails(userID: String) -> ObservedValues<MomentsDetails> {
    timelines.values(of: Key(userID))
  }

  /// How a user's timeline is being loaded: the present state first, then the newest after each change.
  ///
  /// A timeline that is there stays in the state whatever becomes of a load.
  public nonisolated func loadState(userID: String) -> ObservedValues<MomentsLoadState> {
    .mapping(timelines.states(of: Key(userID)), .latest) { MomentsLoadState($0) }
  }

  /// The moments on a user's timeline whose likes no stored timeline has yet, and whether they are liked: the present
  /// ones first, then the newest after each change.
  public nonisolated func pendingLikes(userID: String) -> ObservedValues<[String: Bool]> {
    .mapping(timelines.pendingMutations(of: Key(userID)), .latest) { likes in
      likes.reduce(into: [:]) { $0[$1.momentID] = $1.isLiked }
    }
  }

  /// Fetches the timeline of a user: one request, one save.
  ///
  /// Callers that ask for the same user at the same time share the request. When it returns, the timeline is durable,
  /// and an observer that comes now gets it. Cancelling ends this call alone, and the request with the last call.
  /// Where a like was confirmed meanwhile, or another process stored a timeline, the reply may be older: then the timeline
  /// is asked for once more.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  public func getMoments(userID: String) async throws(MomentsRepoError) {
    try await call(userID) { key async throws(RepositoryError<APISessionError>) in try await timelines.reloadWhole(key)
    }
  }

  /// Fetches the timeline of a user unless the stored one is fresh.
  ///
  /// Observers have the stored one meanwhile. A next page that was appended makes nothing fresh. After a relaunch the time
  /// of the last save counts.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  public func refreshMoments(userID: String) async throws(MomentsRepoError) {
    try await call(userID) { key async throws(RepositoryError<APISessionError>) in try await timelines.refreshWhole(key)
    }
  }

  /// Fetches the newest page of the timeline of a user, and joins it to what is stored, so that there is no gap.
  ///
  /// Callers and cancellation are as in ``getMoments(userID:)``.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  public func reloadMoments(userID: String) async throws(MomentsRepoError) {
    try await call(userID) { key async throws(RepositoryError<APISessionError>) in try await timelines.reload(key) }
  }

  /// Fetches the page behind the last stored moment of the timeline of a user, and appends it, without duplicates.
  ///
  /// Where the stored timeline is whole, nothing is fetched; where nothing is stored, the newest page is. After a failure,
  /// the next call asks for the same page. Where the server refuses the page for good, because the moment before it is
  /// gone, the next ``reloadMoments(userID:)`` keeps the newest page alone, and the next pages lead on from there.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  public func loadMoreMoments(userID: String) async throws(MomentsRepoError) {
    try await call(userID) { key async throws(RepositoryError<APISessionError>) in try await timelines.loadMore(key) }
  }

  /// Sets whether a user likes a moment.
  ///
  /// Every observer sees it at once. Then it is written down, sent, and confirmed by the timeline the server answers
  /// with. A user's likes are sent in the order they were made. Cancelling ends the call and not the like.
  ///
  /// - Returns: ``MomentLikeOutcome/confirmed`` when the server has it and the timeline with it is durable, or
  ///   ``MomentLikeOutcome/queued`` when it is durable and will be sent, because the server is away, what it says can't be
  ///   used, or it wants the user to sign in again.
  /// - Throws: ``MomentsRepoError``: the server refused, the like could not be written down, or was cancelled in
  ///   ``mutations``, and observers see it no more; or ``MomentsRepoError/cancelled`` as the calling task was cancelled.
  @discardableResult
  public func updateLike(
    isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(MomentsRepoError) -> MomentLikeOutcome {
    let like = MomentLike(userID: userID, momentID: momentID, isLiked: isLiked)
    let result = try await call(userID) { key async throws(RepositoryError<APISessionError>) in
      try await timelines.perform(like, on: key)
    }
    return result == .confirmed ? .confirmed : .queued
  }

  /// Tries again at once to send the likes that wait: call it when the network is back, or the user has signed in.
  public func retryLikes() async {
    await timelines.resumeAll()
  }

  /// Sends the likes of a user that wait for the user to sign in, and lets one who has signed out use the repository again.
  ///
  /// Every repository on the store learns of it.
  public func credentialsChanged(userID: String) async {
    await timelines.credentialsChanged(userID: userID)
  }

  /// Signs a user out: erases the user's timeline and likes, in every process on the store.
  ///
  /// From here on calls for the user throw ``MomentsRepoError/signedOut``, until ``credentialsChanged(userID:)``. See
  /// `SyncedRepository.signOut(userID:unsent:)`.
  ///
  /// - Parameters:
  ///   - userID: The user.
  ///   - policy: What becomes of the likes that the server doesn't have.
  /// - Throws: `SignOutError`.
  public func signOut(userID: String, unsent policy: UnsentPolicy) async throws(SignOutError) {
    try await timelines.signOut(userID: userID, unsent: policy)
  }

  /// Returns what the repository has and does, for a log or a report of a fault.
  public func report() async -> RepositoryReport {
    await timelines.report()
  }

  private typealias Key = MomentsSource.Key

  private func call<Result: Sendable>(
    _ userID: String, _ body: (Key) async throws(RepositoryError<APISessionError>) -> Result
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
