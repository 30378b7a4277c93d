internal import DataStore
internal import Multicast
internal import Repository

/// Brings the changes of a data store, with the pending likes laid over them, to the observers of a ``MomentsRepo``.
///
/// One actor for all timelines: what is known changes and is told in one step. Apart from the repository, so that what
/// runs for it does not keep the repository alive.
actor MomentsBroadcast {
  private enum Progress {
    case opening
    /// Every change up to this one has been sent.
    case reached(revision: UInt64)
    /// The store could not be observed. Nobody follows it now.
    case failed(StoreError)
  }

  /// What the observers of one user's timeline read.
  private struct Relays: Sendable {
    let details = MulticastRelay<MomentsDetails>(replay: 1, buffering: .unbounded)
    let loadState = CurrentValueRelay(MomentsLoadState.idle)
    let pendingLikes = CurrentValueRelay<[String: Bool]>([:])
  }

  // What is not private is for `MomentsBroadcast+Likes.swift` and `MomentsBroadcast+Paging.swift`, and for nobody else.

  private let store: any PersistentDataStoreType
  var timelines: [String: MomentsTimeline] = [:]
  var pagings: [String: MomentsPaging] = [:]
  private var saves: [String: TaskChain] = [:]
  var enqueuing = TaskChain()
  /// Likes that are shown no more.
  ///
  /// One that is sent all the same was requeued.
  var takenBack: Set<MutationID> = []
  /// The queue that is being run; the repository keeps it.
  weak var queue: MutationQueue<MomentLike, Void, MomentsRepoError>?

  private let everyUser = MulticastRelay<MomentsDetails>(replay: 1, buffering: .unbounded)
  private let users = Lock<[String: Relays]>([:])
  private let progress = CurrentValueRelay(Progress.opening)

  init(store: any PersistentDataStoreType) {
    self.store = store
  }

  /// Checks that the timeline of a user can be stored, before anything depends on it.
  nonisolated func validate(userID: String) throws(MomentsRepoError) {
    do throws(StoreError) { try store.validate(userID: userID) } catch { throw .store(error) }
  }

  // MARK: - Observing

  nonisolated var momentsDetails: MulticastStream<MomentsDetails, Never> { everyUser.stream }

  nonisolated func momentsDetails(userID: String) -> MulticastStream<MomentsDetails, Never> {
    relays(userID: userID).details.stream
  }

  nonisolated func loadState(userID: String) -> MulticastStream<MomentsLoadState, Never> {
    relays(userID: userID).loadState.stream
  }

  nonisolated func pendingLikes(userID: String) -> MulticastStream<[String: Bool], Never> {
    relays(userID: userID).pendingLikes.stream
  }

  private nonisolated func relays(userID: String) -> Relays {
    users.withLock { users in
      if let relays = users[userID] { return relays }
      let relays = Relays()
      users[userID] = relays
      return relays
    }
  }

  // MARK: - Following the store

  /// Sends what the store holds, then every change of it, and runs the queue of likes beside that, until the calling
  /// task is cancelled.
  ///
  /// Where the store cannot be read, waits until somebody needs it, and tries again. Likes are sent also while the
  /// timelines cannot be observed.
  func run(_ queue: MutationQueue<MomentLike, Void, MomentsRepoError>) async {
    self.queue = queue
    // Laid over the timelines before the first of them is shown.
    while let error = await restore(queue) {
      progress.send(.failed(error))
      guard await isNeeded() else { return }
    }
    // What is stored is shown before the likes bring something newer.
    var changes = await observe()
    async let sending: Void = send(queue)
    while changes == nil, await isNeeded() { changes = await observe() }
    if let changes { for await commit in changes { for change in commit { receive(change) } } }
    await sending
  }

  /// Sends what the store holds.
  ///
  /// - Returns: Every change of it since; nil where the store could not be observed.
  private func observe() async -> MulticastSubscription<[StoreChange<MomentsDetails>], Never>? {
    do throws(StoreError) {
      let observation = try await store.observeMomentsDetails()
      for entry in observation.stored {
        guard let userID = entry.key.id else { continue }
        update(userID, isNews: true) { $0.find(entry.stored) }
        reach(entry.stored.revision)
      }
      reach(0)
      return observation.changes
    } catch {
      progress.send(.failed(error))
      return nil
    }
  }

  /// Waits until somebody needs what the store could not give.
  ///
  /// - Returns: False when the calling task was cancelled first.
  private func isNeeded() async -> Bool {
    for await progress in progress.stream {
      if case .opening = progress { return true }
    }
    return false
  }

  /// Has the store observed again if that failed before.
  func reopenIfNeeded() {
    if case .failed = progress.value { progress.send(.opening) }
  }

  /// Waits until the change with this revision has been sent to the observers.
  ///
  /// - Throws: `MomentsRepoError.store(_:)` when the store cannot be observed, or `MomentsRepoError.cancelled`.
  private func reaches(_ revision: UInt64) async throws(MomentsRepoError) {
    reopenIfNeeded()
    for await progress in progress.stream {
      switch progress {
      case .opening: continue
      case .reached(let reached): if reached >= revision { return }
      case .failed(let error): throw .store(error)
      }
    }
    throw .cancelled
  }

  /// Has the store observed, and returns when what it holds has been sent to the observers.
  func open() async throws(MomentsRepoError) { try await reaches(0) }

  private func receive(_ change: StoreChange<MomentsDetails>) {
    // Nothing is stored under the name but timelines of users.
    guard let userID = change.key.id else { return }
    switch change {
    case .saved(_, let stored):
      update(userID, isNews: true) { $0.receive(stored) }
    case .removed:
      let relays = relays(userID: userID)
      // Nobody who comes later may see what was removed.
      if everyUser.latest == relays.details.latest { everyUser.resetReplay() }
      relays.details.resetReplay()
      update(userID) { $0.remove() }
    }
    reach(change.revision)
  }

  private func reach(_ revision: UInt64) {
    progress.update { current in
      if case .reached(let reached) = current, reached >= revision { return }
      current = .reached(revision: revision)
    }
  }

  /// Changes what is known of a timeline, and tells the observers what is new.
  ///
  /// - Parameter isNews: Whether the timeline is sent even if it looks as before.
  @discardableResult
  func update<Result>(
    _ userID: String, isNews: Bool = false, _ change: (inout MomentsTimeline) -> Result
  ) -> Result {
    let oldDetails = timelines[userID]?.details
    // Changed in its place: a copy would be one of all its likes.
    let result = change(&timelines[userID, default: MomentsTimeline()])
    let timeline = timelines[userID, default: MomentsTimeline()]

    let relays = relays(userID: userID)
    if let details = timeline.details, isNews || details != oldDetails {
      relays.details.send(details)
      everyUser.send(details)
    }
    if timeline.loadState != relays.loadState.value { relays.loadState.send(timeline.loadState) }
    if timeline.pendingLikes != relays.pendingLikes.value { relays.pendingLikes.send(timeline.pendingLikes) }
    return result
  }

  // MARK: - Requests

  /// A load begins, unless it was given up before: then it would hide the one that came after it.
  func beginLoading(
    _ part: MomentsTimeline.Part, userID: String
  ) throws(MomentsRepoError) -> MomentsTimeline.Load {
    if Task.isCancelled { throw .cancelled }
    return update(userID) { $0.beginLoading(part) }
  }

  func endLoading(_ load: MomentsTimeline.Load, userID: String, error: MomentsRepoError? = nil) {
    update(userID) { $0.endLoading(load, error) }
  }

  func beginRequest(userID: String) -> VersionGuard.Ticket {
    update(userID) { $0.beginRequest() }
  }

  /// What is stored when all replies that were accepted are stored; nil when nothing is.
  func stored(userID: String) async throws(MomentsRepoError) -> StoredValue<MomentsDetails>? {
    let load = saves[userID, default: TaskChain()].add {
      [store] () -> Result<StoredValue<MomentsDetails>?, StoreError> in
      do throws(StoreError) {
        return .success(try await store.decodableMomentsDetails(userID: userID))
      } catch {
        return .failure(error)
      }
    }
    switch await load.value {
    case .failure(let error): throw .store(error)
    case .success(let stored): return stored
    }
  }

  /// Stores a reply, unless it may be older than what is stored or does not continue it, and waits until the observers
  /// have it.
  ///
  /// A page is joined to what is stored when its turn to be stored has come, so that no change is lost that others made.
  ///
  /// - Parameters:
  ///   - reply: The reply.
  ///   - userID: Whose timeline it is.
  ///   - ticket: The ticket of its request.
  ///   - id: The like that it answers, if any.
  /// - Returns: Whether it was stored.
  /// - Throws: ``MomentsRepoError``; then nothing was stored, or it is and the observers cannot be told: for a like
  ///   see ``isSaved(_:as:)``.
  func save(
    _ reply: MomentsReply, userID: String, requestedAt ticket: VersionGuard.Ticket,
    confirming id: MutationID? = nil
  ) async throws(MomentsRepoError) -> Bool {
    let arrival = beginRequest(userID: userID)
    let isObserved = if case .reached = progress.value { true } else { false }
    // Replies are stored in the order they arrived, and to be cancelled does not lose one that is there.
    let save = saves[userID, default: TaskChain()].add {
      await self.store(reply, userID: userID, requestedAt: ticket, arrivedAt: arrival)
    }
    switch await save.value {
    case .failure(let error): throw .store(error)
    case .success(nil): return false
    case .success(let stored?):
      // A page may lack the moment of a like that is confirmed, so it is not what such a like waits for.
      if reply.isWhole { update(userID) { $0.saved(stored.revision, requestedAt: ticket, confirming: id) } }
      if !isObserved {
        try await open()
        // Of what was removed before the store was observed no change tells.
        if try await self.stored(userID: userID) == nil { return true }
      }
      try await reaches(stored.revision)
      return true
    }
  }

  /// Stores a reply whose turn has come; nil if it may be older than what is stored, or does not continue it.
  private func store(
    _ reply: MomentsReply, userID: String, requestedAt ticket: VersionGuard.Ticket,
    arrivedAt moment: VersionGuard.Ticket
  ) async -> Result<StoredValue<MomentsDetails>?, StoreError> {
    guard update(userID, { $0.beginSaving(ticket, arrivedAt: moment) }) else { return .success(nil) }
    var saved: StoredValue<MomentsDetails>?
    defer { update(userID) { $0.endSaving(saved?.revision) } }
    do throws(StoreError) {
      let stored = reply.needsStored ? try await store.decodableMomentsDetails(userID: userID) : nil
      let refusedCursor = pagings[userID]?.refusedCursor
      guard let details = reply.merged(with: stored?.value, refusedCursor: refusedCursor) else {
        return .success(nil)
      }
      let new = try await store.save(momentsDetails: details, userID: userID)
      saved = new
      notePage(reply, savedAs: new, joinedTo: stored, userID: userID)
      return .success(new)
    } catch {
      return .failure(error)
    }
  }
}
