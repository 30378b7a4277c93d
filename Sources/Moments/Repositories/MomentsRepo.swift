internal import DataStore
public import Foundation
public import Multicast
public import Repository

/// The repository of timelines: fetches them, keeps them, and broadcasts what is kept with the likes that are pending.
///
/// A value goes one way: the server's reply → the store → the store's changes, with the pending likes laid over them →
/// the observers. Nothing else reaches an observer: what is on the screens is what is stored and what the user has
/// pending, whichever screen, process, or other part of the app caused the change.
///
/// - **Start**: What was stored before the repository existed reaches observers first, and under it lie the likes of
///   earlier processes that the server does not have yet. Those are sent at once.
/// - **Ordering**: Observers see all saves in the order of the store, each once, and never an older timeline after a
///   newer one: a reply that may be older than what is stored, by whomever, is not stored.
/// - **Lifetime**: Streams do not keep the repository alive. They finish when it is released. What is queued stays in
///   the store, and the next repository on it sends it.
public actor MomentsRepo: MomentsRepoType {
  /// What happens, for a log or a chart: requests, retries, the queue.
  public nonisolated var events: MulticastStream<RepositoryEvent, Never> { eventSource.stream }

  /// The likes that the server does not have yet, and those it refused without anybody waiting for the answer.
  ///
  /// To look at, to cancel, to requeue or to discard; the repository runs it.
  public nonisolated let likeQueue: MutationQueue<MomentLike, Void, MomentsRepoError>

  private let freshness: Freshness
  private let now: @Sendable () -> Date
  private let eventSource = RepositoryEvents()
  private let broadcast: MomentsBroadcast
  private let fetcher: MomentsFetcher
  private let running: Task<Void, Never>

  /// Creates a repository on a data store and two sessions, starts to broadcast what is stored, and to send the likes
  /// that are queued in the store.
  ///
  /// One repository at a time may be on a store, as two would send the same likes.
  ///
  /// - Parameters:
  ///   - persistentDataStore: Where timelines are kept, and likes until the server has them.
  ///   - getMomentsByUserIDSession: Fetches timelines.
  ///   - updateMomentLikeSession: Sends likes, each under an idempotency key that stays the same for all attempts.
  ///   - pageSize: How many moments a page has at most; at least 1.
  ///   - freshness: When ``refreshMoments(userID:)`` takes a stored timeline for good enough.
  ///   - retryPolicy: When a like that could not be sent is tried again.
  ///   - clock: Measures the waits between attempts.
  ///   - now: Tells the time, for the age of timelines.
  ///   - random: Where the length of the waits comes from.
  public init(
    persistentDataStore: any PersistentDataStoreType,
    getMomentsByUserIDSession: any GetMomentsByUserIDSessionType,
    updateMomentLikeSession: any UpdateMomentLikeSessionType,
    pageSize: Int = 20,
    freshness: Freshness = Freshness(timeToLive: .seconds(60)),
    retryPolicy: RetryPolicy = RetryPolicy(),
    clock: any Clock<Duration> = ContinuousClock(),
    now: @escaping @Sendable () -> Date = { Date() },
    random: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()
  ) {
    precondition(pageSize > 0, "A page has one moment at least: give a pageSize above 0.")
    let broadcast = MomentsBroadcast(store: persistentDataStore)
    let fetcher = MomentsFetcher(
      session: getMomentsByUserIDSession, pageSize: pageSize, broadcast: broadcast, events: eventSource)
    let delivery = MomentLikeDelivery(session: updateMomentLikeSession, broadcast: broadcast, fetcher: fetcher)
    let queue = MutationQueue<MomentLike, Void, MomentsRepoError>(
      store: persistentDataStore.keyValueStore, name: "moment-likes", retryPolicy: retryPolicy, clock: clock, now: now,
      random: random, events: eventSource
    ) { like, key in await delivery.send(like, idempotencyKey: key) }

    self.freshness = freshness
    self.now = now
    self.broadcast = broadcast
    self.fetcher = fetcher
    likeQueue = queue
    running = Task { await broadcast.run(queue) }
  }

  deinit {
    running.cancel()
  }

  // MARK: - Observing

  /// Every timeline that is saved or edited, of any user: the newest first for a new observer, then each one once, in
  /// order.
  ///
  /// An observer of an empty store waits for the first save. Nothing is dropped however slow the observer; where only
  /// the newest counts, say so by `buffering(.latest)`.
  public nonisolated var momentsDetails: MulticastStream<MomentsDetails, Never> { broadcast.momentsDetails }

  /// As ``momentsDetails``, of one user.
  public nonisolated func momentsDetails(userID: String) -> MulticastStream<MomentsDetails, Never> {
    broadcast.momentsDetails(userID: userID)
  }

  /// How a user's timeline is being loaded: the present state first, then the newest after each change.
  ///
  /// A timeline that is there stays in the state whatever becomes of a load.
  public nonisolated func loadState(userID: String) -> MulticastStream<MomentsLoadState, Never> {
    broadcast.loadState(userID: userID)
  }

  /// The moments on a user's timeline whose likes no stored timeline has yet, and whether they are liked: the present
  /// ones first, then the newest after each change.
  public nonisolated func pendingLikes(userID: String) -> MulticastStream<[String: Bool], Never> {
    broadcast.pendingLikes(userID: userID)
  }

  // MARK: - Loading

  /// Fetches the timeline of a user: one request, one save.
  ///
  /// Callers that ask for the same user at the same time share the request. When it returns, the timeline is durable,
  /// and an observer that comes now gets it. To be cancelled ends this call alone, and the request with the last call.
  /// Where a like was confirmed meanwhile, or somebody else stored a timeline, nobody can say which of the two is the
  /// newer: then the timeline is asked for once more.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  public func getMoments(userID: String) async throws(MomentsRepoError) {
    try await fetcher.fetch(userID: userID)
    // The server can be reached: what waits for that need not wait longer.
    await likeQueue.retryNow()
  }

  /// Fetches the timeline of a user unless the stored one is fresh.
  ///
  /// Observers have the stored one meanwhile. What counts is when its newest moments were saved: a next page that was
  /// appended makes nothing fresh. After a relaunch, the time of the last save is all that is known, so that counts.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  public func refreshMoments(userID: String) async throws(MomentsRepoError) {
    let savedAt = try await broadcast.headSavedAt(userID: userID)
    if freshness.revalidation(savedAt: savedAt, now: now()) == .notNeeded {
      try await broadcast.open()
    } else {
      try await getMoments(userID: userID)
    }
  }

  /// Fetches the newest page of the timeline of a user, and joins it to what is stored.
  ///
  /// Stored moments behind the page's last one stay if that is among the stored ones and the page has all that are
  /// stored before it. Otherwise nobody knows what lies between, or where the missing ones went, and they go: a stored
  /// timeline never has a gap. They go too where nothing leads on behind them: the page has the last of them, or the
  /// server refused to give the next page. What the server changes among those that stay is not seen.
  ///
  /// Callers and cancellation are as in ``getMoments(userID:)``.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  public func reloadMoments(userID: String) async throws(MomentsRepoError) {
    try await fetcher.fetch(.newestPage, userID: userID)
    await likeQueue.retryNow()
  }

  /// Fetches the page behind the last stored moment of the timeline of a user, and appends it, without duplicates.
  ///
  /// Where the stored timeline is whole, nothing is asked for; where nothing is stored, the newest page is. Callers and
  /// cancellation are as in ``getMoments(userID:)``. After a failure, the next call asks for the same page.
  ///
  /// The server refuses a page for good where the moment before it is gone. Then call ``reloadMoments(userID:)``: the
  /// first one after a refusal (an error that is neither transient nor a cancellation) keeps the newest page alone, and
  /// the next pages lead on from there. A relaunch forgets the refusal, and the next one tells it again.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  public func loadMoreMoments(userID: String) async throws(MomentsRepoError) {
    guard try await fetcher.fetch(.nextPage, userID: userID) else { return }
    await likeQueue.retryNow()
  }

  // MARK: - Liking

  /// Sets whether a user likes a moment.
  ///
  /// Every observer sees it at once. Then it is written down, sent, and confirmed by the timeline the server answers
  /// with. A user's likes are sent in the order they were made. To be cancelled ends the call and not the like.
  ///
  /// - Returns: ``MomentLikeOutcome/confirmed`` when the server has it and the timeline with it is durable, or
  ///   ``MomentLikeOutcome/queued`` when the server is away, or wants the user to sign in again: the like is durable and
  ///   will be sent.
  /// - Throws: ``MomentsRepoError``: the server refused, the like could not be written down, or was cancelled in
  ///   ``likeQueue``, and observers see it no more; or ``MomentsRepoError/cancelled`` as the calling task was cancelled.
  @discardableResult
  public func updateLike(
    isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(MomentsRepoError) -> MomentLikeOutcome {
    if Task.isCancelled { throw .cancelled }
    try broadcast.validate(userID: userID)
    let like = MomentLike(userID: userID, momentID: momentID, isLiked: isLiked)
    let id = MutationID()
    let ticket: MutationTicket<Void, MomentsRepoError>
    do {
      ticket = try await enqueue(like, as: id).get()
    } catch {
      await broadcast.refuse(like, as: id)
      throw MomentsRepoError(error)
    }
    await broadcast.follow(like, ticket)
    await broadcast.reopenIfNeeded()

    let fate: MutationFate<Void, MomentsRepoError>
    do { fate = try await ticket.fate() } catch { throw .cancelled }
    switch fate {
    case .delivered: return .confirmed
    case .queued: return .queued
    case .cancelled:
      await broadcast.refuse(like, as: id)
      throw .cancelled
    case .refused(let error):
      await broadcast.refuse(like, as: id)
      await discard(id)
      throw error
    }
  }

  /// Tries again at once to send the likes that wait: call it when the network is back.
  public func retryLikes() async {
    await broadcast.reopenIfNeeded()
    await likeQueue.retryNow()
  }

  private func enqueue(
    _ like: MomentLike, as id: MutationID
  ) async -> Result<MutationTicket<Void, MomentsRepoError>, MutationQueueError> {
    let queue = likeQueue
    let enqueued = await broadcast.add(like, as: id) {
      () async -> Result<MutationTicket<Void, MomentsRepoError>, MutationQueueError> in
      do throws(MutationQueueError) {
        return .success(try await queue.enqueue(like, orderingKey: like.userID, id: id))
      } catch {
        return .failure(error)
      }
    }
    return await enqueued.value
  }

  /// Discards a like that was refused, as its caller is told.
  private func discard(_ id: MutationID) async {
    do {
      try await likeQueue.discard(id)
    } catch {
      // It stays a dead letter, which the queue shows.
      eventSource.emit(.storeFailed(reason: error.description))
    }
  }
}
