internal import DataStore
internal import Multicast

/// A commit of a repository that the repository hasn't applied yet, or whose call hasn't ended.
private struct OwnCommit {
  /// The mutations whose first records it contains.
  let added: Set<MutationID>
  /// The commit as the store has returned it, or as the feed has shown it.
  var made: StoreCommit?
  var isApplied = false
  /// The call that waits until it is applied.
  var waiter: CheckedContinuation<Void, Never>?
}

/// What the engine knows of the feed of its store.
struct FeedState {
  /// The number of times that the feed of a store that tears commits catches up before what it has is applied, although
  /// more arrives.
  static var quietAttempts: Int { 8 }

  fileprivate var feed: (any StoreFeed)?
  /// The parts that the feed has yet to begin to follow.
  fileprivate var beginnings: Set<StoreFeedPart> = []
  fileprivate var followed: Set<StoreFeedPart> = []
  /// For each part, the number of beginnings to ignore, because their calls have failed.
  fileprivate var voidBeginnings: [StoreFeedPart: Int] = [:]
  /// The parts that the feed ends to follow.
  fileprivate var endings: [StoreFeedPart: Task<Void, Never>] = [:]
  /// What a feed that tears commits has reported since it caught up last.
  fileprivate var kept: [StoreFeedElement] = []
  /// Whether a task applies ``kept``.
  fileprivate var isApplyingKept = false
  fileprivate let catchUpQueue = AsyncSerialQueue()
  /// The number of calls that have begun to catch up, and of the last one that has succeeded.
  fileprivate var (begunCatchUp, finishedCatchUp) = (0, 0)
  fileprivate var (expectedMarkers, receivedMarkers) = (0, 0)
  /// Whether nothing is applied anymore, because the repository is released.
  fileprivate(set) var hasEnded = false
  fileprivate var waiters: [(isOver: (FeedState) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
  fileprivate var ownCommits: [StoreTag: OwnCommit] = [:]
  /// The commits whose calls have failed, and of which the store could not be asked whether they were made.
  fileprivate var unknownCommits: Set<StoreTag> = []
}

/// Everything that is stored reaches the core through one feed, in the order of the commits, whoever has stored it.
///
/// Each commit is applied in one step, because a commit that confirms a mutation removes its record and stores the
/// value that includes it.
///
/// A store of another author may tear commits; see ``DataStore/KeyValueStore/feedIsWhole``. What such a store reports
/// is kept until the feed has caught up and nothing arrives anymore, and is then applied in one step.
extension SyncEngine {
  // MARK: - Following

  /// Begins to follow a key, and waits until the core has what is stored.
  func follow<Stored>(_ key: StoreKey<Stored>) async throws(StoreError) {
    try await follow(.key(key.keyName)) { feed async throws(StoreError) in try await feed.follow(key) }
  }

  /// Begins to follow a collection, as ``follow(_:)`` does.
  func follow<Stored: Codable & Sendable>(collection: String, as type: Stored.Type) async throws(StoreError) {
    try await follow(.collection(collection)) { feed async throws(StoreError) in
      try await feed.follow(collection: collection, as: type)
    }
  }

  private func follow(
    _ part: StoreFeedPart, _ follow: @Sendable (any StoreFeed) async throws(StoreError) -> Void
  ) async throws(StoreError) {
    if feed.followed.contains(part) { return }
    feed.beginnings.insert(part)
    while let ending = feed.endings[part] { await ending.value }
    let storeFeed = await startFeed()
    do throws(StoreError) {
      try await follow(storeFeed)
      feed.followed.insert(part)
      if !store.feedIsWhole { try await catchUp() }
    } catch {
      // It is still in `beginnings` unless the feed has begun after all.
      if feed.beginnings.remove(part) != nil, feed.followed.contains(part) {
        feed.voidBeginnings[part, default: 0] += 1
      }
      endFollowing(part)
      throw error
    }
    await wait { !$0.beginnings.contains(part) }
  }

  /// Ends to follow a part.
  func endFollowing(_ part: StoreFeedPart) {
    guard let storeFeed = feed.feed, feed.followed.remove(part) != nil else { return }
    feed.endings[part] = Task(executorPreference: tasks.executor) { [weak self] in
      await storeFeed.endFollowing(part)
      await self?.recordEndOfFollowing(part)
    }
  }

  private func recordEndOfFollowing(_ part: StoreFeedPart) { feed.endings[part] = nil }

  private func startFeed() async -> any StoreFeed {
    if let started = feed.feed { return started }
    let made = await store.feed()
    if let started = feed.feed { return started }
    feed.feed = made
    start { engine in
      for await element in made.elements { await engine.receive(element) }
      await engine.endFeed()
    }
    return made
  }

  /// Ends all waits, because the repository is released.
  private func endFeed() {
    feed.hasEnded = true
    for tag in feed.ownCommits.keys { feed.ownCommits[tag]?.waiter.take()?.resume() }
    resumeWaiters()
  }

  // MARK: - Catching up

  /// Waits until every commit that was made before this call, by any process, is applied.
  ///
  /// Calls that come while one is in progress share the next one.
  func catchUp() async throws(StoreError) {
    guard let storeFeed = feed.feed else { return }
    let number = feed.begunCatchUp + 1
    try await feed.catchUpQueue.run { () async throws(StoreError) in
      if feed.finishedCatchUp >= number || feed.hasEnded { return }
      feed.begunCatchUp += 1
      let (begun, unknown) = (feed.begunCatchUp, feed.unknownCommits)
      var (attempt, keptCount) = (0, 0)
      repeat {
        (attempt, keptCount) = (attempt + 1, feed.kept.count)
        try await storeFeed.catchUp()
        feed.expectedMarkers += 1
        await wait { $0.receivedMarkers >= $0.expectedMarkers }
        // A commit may have been made while its collections were read one after the other.
      } while !store.feedIsWhole && feed.kept.count > keptCount && attempt < FeedState.quietAttempts
      if !store.feedIsWhole { applyKept() }
      // None of them can be made anymore.
      for tag in unknown { feed.ownCommits[tag] = nil }
      feed.unknownCommits.subtract(unknown)
      feed.finishedCatchUp = begun
    }
  }

  /// Applies what other processes have stored.
  ///
  /// If that fails, the next write of a changed record finds the change.
  func catchUpIfPossible() async {
    do throws(StoreError) {
      try await catchUp()
    } catch {
      events.emit(.storeFailed(error))
    }
  }

  private func wait(until isOver: @escaping (FeedState) -> Bool) async {
    if feed.hasEnded || isOver(feed) { return }
    await withCheckedContinuation { feed.waiters.append((isOver, $0)) }
  }

  private func resumeWaiters() {
    if feed.waiters.isEmpty { return }
    let (state, waiters) = (feed, feed.waiters)
    let isOver = waiters.map { state.hasEnded || $0.isOver(state) }
    feed.waiters = zip(waiters, isOver).filter { !$0.1 }.map(\.0)
    for (waiter, isOver) in zip(waiters, isOver) where isOver { waiter.continuation.resume() }
  }

  // MARK: - Applying

  private func receive(_ element: StoreFeedElement) {
    if case .caughtUp = element {
      feed.receivedMarkers += 1
    } else if store.feedIsWhole {
      apply([element])
    } else {
      // A sign-out doesn't wait, because nothing of the user may be shown after it.
      if case .committed(let transaction) = element { update { $0.applyUsers(transaction) } }
      feed.kept.append(element)
      applyKeptSoon()
    }
    resumeWaiters()
  }

  /// Starts a task that applies what a feed that tears commits has reported, unless one is running.
  private func applyKeptSoon() {
    guard !feed.isApplyingKept else { return }
    feed.isApplyingKept = true
    start { engine in await engine.applyAllKept() }
  }

  private func applyAllKept() async {
    await keepTrying { () async throws(StoreError) in
      while !feed.kept.isEmpty, !feed.hasEnded { try await catchUp() }
    }
    feed.isApplyingKept = false
  }

  /// Applies what a feed that tears commits has reported, with the commits that this repository has made meanwhile.
  private func applyKept() {
    let elements = feed.kept
    feed.kept = []
    let unapplied = feed.ownCommits.values.filter { !$0.isApplied }.compactMap(\.made)
    apply(elements, own: unapplied.sorted { $0.revision < $1.revision })
    resumeWaiters()
  }

  /// Applies elements in one step.
  ///
  /// - Parameters:
  ///   - elements: The elements.
  ///   - unapplied: Commits of this repository that the elements don't show as such, by revision.
  private func apply(_ elements: [StoreFeedElement], own unapplied: [StoreCommit] = []) {
    var (unapplied, beginnings, voids) = (unapplied[...], feed.beginnings, feed.voidBeginnings)
    let applied = update { [own = feed.ownCommits] core in
      var applied: [StoreCommit] = []
      for case .committed(let transaction) in elements { core.applyUsers(transaction) }
      for element in elements {
        switch element {
        case .began(let part, let changes):
          if let count = voids[part] {
            voids[part] = count > 1 ? count - 1 : nil
          } else if beginnings.remove(part) != nil {
            core.begin(part, changes)
          }
        case .committed(let transaction):
          while let next = unapplied.first, next.revision <= transaction.revision {
            core.applyWrite(next)
            applied.append(unapplied.removeFirst())
          }
          applied += core.apply(transaction, isBeginning: { beginnings.contains(.key($0)) }, own: { own[$0]?.added })
        case .caughtUp: break
        }
      }
      for commit in unapplied { core.applyWrite(commit) }
      return applied + unapplied
    }
    (feed.beginnings, feed.voidBeginnings) = (beginnings, voids)
    for commit in applied {
      feed.ownCommits[commit.tag]?.made = commit
      feed.ownCommits[commit.tag]?.isApplied = true
      feed.ownCommits[commit.tag]?.waiter.take()?.resume()
    }
  }

  // MARK: - Committing

  /// Makes a commit of this repository, and waits until the core has applied it.
  ///
  /// The feed shows a commit before the call of the store returns, but the core may not have applied it by then. A call
  /// that has failed may have made its commit nevertheless; the feed then tells.
  ///
  /// - Parameters:
  ///   - batch: The contents of the commit.
  ///   - added: The mutations whose first records it contains.
  /// - Throws: The error of the store, unless the feed shows that the commit was made.
  @discardableResult
  func commit(_ batch: StoreBatch, adding added: Set<MutationID> = []) async throws(StoreError) -> StoreCommit {
    let tag = batch.tag
    feed.ownCommits[tag] = OwnCommit(added: added)
    do throws(StoreError) {
      let commit = try await store.commit(batch)
      feed.ownCommits[tag]?.made = commit
      // A feed that tears commits shows the changes one by one, and without their tag.
      if !store.feedIsWhole { await keepTrying { () async throws(StoreError) in try await catchUp() } }
      await waitUntilApplied(tag)
      feed.ownCommits[tag] = nil
      return commit
    } catch {
      if error.isCertain {
        feed.ownCommits[tag] = nil
      } else if await hasCaughtUp() {
        if let commit = feed.ownCommits.removeValue(forKey: tag), commit.isApplied, let made = commit.made {
          return made
        }
      } else {
        // Until the store can be read again, the feed may still show the commit.
        feed.unknownCommits.insert(tag)
      }
      throw error
    }
  }

  private func waitUntilApplied(_ tag: StoreTag) async {
    guard !feed.hasEnded, let commit = feed.ownCommits[tag], !commit.isApplied else { return }
    await withCheckedContinuation { feed.ownCommits[tag]?.waiter = $0 }
  }

  private func hasCaughtUp() async -> Bool {
    do throws(StoreError) {
      try await catchUp()
      return true
    } catch {
      // The caller has an error of its own.
      return false
    }
  }

  // MARK: - Reading

  /// Returns the stored value; `nil` if there is none, or none that can be decoded.
  func load<Stored>(_ key: StoreKey<Stored>) async throws(StoreError) -> StoredValue<Stored>? {
    do throws(StoreError) {
      return try await store.load(key)
    } catch {
      guard case .undecodable = error else { throw error }
      return nil
    }
  }
}

extension StoreError {
  /// Whether a commit with this error was certainly not made.
  fileprivate var isCertain: Bool {
    switch self {
    case .preconditionFailed, .encodingFailed, .invalidKey, .collectionHasAnotherType, .newerFormat: true
    default: false
    }
  }
}
