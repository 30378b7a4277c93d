internal import DataStore
internal import Foundation
internal import Multicast

/// Applies what the store has committed, in order: the only way by which stored values and mutations reach the engine,
/// whoever has stored them.
///
/// Each commit is applied in one step, because a commit that confirms a mutation removes its record and stores the value
/// that includes it. Observers receive the result of the step.
///
/// A store of another author may tear commits; see ``DataStore/KeyValueStore/feedIsWhole``. What such a store reports
/// is kept until the feed has caught up and nothing arrives anymore, and is then applied in one step.
final class SyncFeed<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Changes = [StoreFeedChange]

  /// The number of times that the feed of a store that tears commits catches up before what it has is applied, although
  /// more arrives.
  private static var quietAttempts: Int { 8 }

  /// A commit of this repository that the engine hasn't applied yet, or whose call hasn't ended.
  private struct OwnCommit {
    /// The mutations whose first records it contains.
    let added: Set<MutationID>
    /// The commit as the store has returned it, or as the feed has shown it.
    var made: StoreCommit?
    var isApplied = false
    /// Whether the call has failed, and the store could not be asked whether it was made.
    var isUnknown = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let store: any KeyValueStore
  private let events: RepositoryEvents
  private var feed: (any StoreFeed)?
  /// What happens when the feed begins to follow a part.
  private var beginnings: [StoreFeedPart: (Changes, isolated Engine) -> Void] = [:]
  private var followed: Set<StoreFeedPart> = []
  /// For each part, the number of beginnings to ignore, because their calls have failed.
  private var voidBeginnings: [StoreFeedPart: Int] = [:]
  /// The parts that the feed ends to follow.
  private var endings: [StoreFeedPart: Task<Void, Never>] = [:]
  /// What a feed that tears commits has reported since it caught up last.
  private var kept: [StoreFeedElement] = []
  /// Whether a task applies ``kept``.
  private var isApplyingKept = false
  private var isApplying = false
  private var cellsToPublish: [SyncCell<Source>] = []
  private let catchUpQueue = AsyncSerialQueue()
  /// The number of calls that have begun to catch up, and of the last one that has succeeded.
  private var (begunCatchUp, finishedCatchUp) = (0, 0)
  private var (expectedMarkers, receivedMarkers) = (0, 0)
  /// Whether nothing is applied anymore, because the repository is released.
  private(set) var hasEnded = false
  private var waiters: [(isOver: () -> Bool, continuation: CheckedContinuation<Void, Never>)] = []
  private var ownCommits: [StoreTag: OwnCommit] = [:]

  init(_ store: any KeyValueStore, events: RepositoryEvents) {
    (self.store, self.events) = (store, events)
  }

  // MARK: - Following

  /// Begins to follow a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - engine: The engine.
  ///   - begin: Called with what is stored, at its place in the order of commits. It isn't called if the repository is
  ///     released first.
  func follow<Value>(
    _ key: StoreKey<Value>, in engine: isolated Engine, _ begin: @escaping (Changes, isolated Engine) -> Void
  ) async throws(StoreError) {
    try await follow(.key(key.keyName), in: engine, begin) { feed async throws(StoreError) in
      try await feed.follow(key)
    }
  }

  /// Begins to follow a collection, as ``follow(_:in:_:)`` does.
  func follow<Value: Codable & Sendable>(
    collection: String, as type: Value.Type, in engine: isolated Engine,
    _ begin: @escaping (Changes, isolated Engine) -> Void
  ) async throws(StoreError) {
    try await follow(.collection(collection), in: engine, begin) { feed async throws(StoreError) in
      try await feed.follow(collection: collection, as: type)
    }
  }

  private func follow(
    _ part: StoreFeedPart, in engine: isolated Engine, _ begin: @escaping (Changes, isolated Engine) -> Void,
    _ follow: @Sendable (any StoreFeed) async throws(StoreError) -> Void
  ) async throws(StoreError) {
    if followed.contains(part) { return }
    beginnings[part] = begin
    while let ending = endings[part] { await ending.value }
    let feed = await start(in: engine)
    do throws(StoreError) {
      try await follow(feed)
      followed.insert(part)
      if !store.feedIsWhole { try await catchUp(in: engine) }
    } catch {
      // It is still in `beginnings` unless the feed has begun after all.
      if beginnings.removeValue(forKey: part) != nil, followed.contains(part) { voidBeginnings[part, default: 0] += 1 }
      if followed.contains(part) { endFollowing(part, in: engine) }
      throw error
    }
    await wait { [weak self] in self?.beginnings[part] == nil }
  }

  /// Ends to follow a part.
  func endFollowing(_ part: StoreFeedPart, in engine: isolated Engine) {
    guard let feed, followed.remove(part) != nil else { return }
    endings[part] = Task(executorPreference: engine.tasks.executor) { [weak engine] in
      await feed.endFollowing(part)
      await engine?.recordEndOfFollowing(part)
    }
  }

  /// Records that the feed has ended to follow a part.
  func recordEnd(of part: StoreFeedPart) { endings[part] = nil }

  private func start(in engine: isolated Engine) async -> any StoreFeed {
    if let feed { return feed }
    let made = await store.feed()
    if let feed { return feed }
    feed = made
    engine.start { engine in
      for await element in made.elements { engine.feed.receive(element, in: engine) }
      engine.feed.end()
    }
    return made
  }

  /// Ends all waits, because the repository is released.
  private func end() {
    hasEnded = true
    for tag in ownCommits.keys { ownCommits[tag]?.waiter.take()?.resume() }
    resumeWaiters()
  }

  // MARK: - Catching up

  /// Waits until every commit that was made before this call, by any process, is applied.
  ///
  /// Calls that come while one is in progress share the next one.
  func catchUp(in engine: isolated Engine) async throws(StoreError) {
    guard let feed else { return }
    let number = begunCatchUp + 1
    try await catchUpQueue.run { () async throws(StoreError) in
      if finishedCatchUp >= number || hasEnded { return }
      begunCatchUp += 1
      let (begun, unknown) = (begunCatchUp, ownCommits.filter(\.value.isUnknown).keys)
      var (attempt, keptCount) = (0, 0)
      repeat {
        (attempt, keptCount) = (attempt + 1, kept.count)
        try await feed.catchUp()
        expectedMarkers += 1
        await wait { [weak self] in self.map { $0.receivedMarkers >= $0.expectedMarkers } ?? true }
        // A commit may have been made while its collections were read one after the other.
      } while !store.feedIsWhole && kept.count > keptCount && attempt < Self.quietAttempts
      if !store.feedIsWhole { applyKept(in: engine) }
      // None of them can be made anymore.
      for tag in unknown { ownCommits[tag] = nil }
      finishedCatchUp = begun
    }
  }

  private func wait(until isOver: @escaping () -> Bool, isolation: isolated (any Actor)? = #isolation) async {
    if hasEnded || isOver() { return }
    await withCheckedContinuation { waiters.append((isOver, $0)) }
  }

  private func resumeWaiters() {
    if waiters.isEmpty { return }
    let over = waiters.filter { hasEnded || $0.isOver() }
    waiters.removeAll { hasEnded || $0.isOver() }
    for waiter in over { waiter.continuation.resume() }
  }

  // MARK: - Committing

  /// Makes a commit of this repository, and waits until the engine has applied it.
  ///
  /// The feed shows a commit before the call of the store returns, but the engine may not have applied it by then. A
  /// call that has failed may have made its commit nevertheless; the feed then tells.
  ///
  /// - Parameters:
  ///   - batch: The contents of the commit.
  ///   - added: The mutations whose first records it contains.
  ///   - engine: The engine.
  /// - Throws: The error of the store, unless the feed shows that the commit was made.
  @discardableResult
  func commit(
    _ batch: StoreBatch, adding added: Set<MutationID> = [], in engine: isolated Engine
  ) async throws(StoreError) -> StoreCommit {
    let tag = batch.tag
    ownCommits[tag] = OwnCommit(added: added)
    do throws(StoreError) {
      let commit = try await store.commit(batch)
      ownCommits[tag]?.made = commit
      // A feed that tears commits shows the changes one by one, and without their tag.
      if !store.feedIsWhole {
        await engine.keepTrying { (engine) async throws(StoreError) in try await engine.feed.catchUp(in: engine) }
      }
      await waitUntilApplied(tag)
      ownCommits[tag] = nil
      return commit
    } catch {
      if error.isCertain {
        ownCommits[tag] = nil
      } else if await hasCaughtUp(in: engine) {
        if let commit = ownCommits.removeValue(forKey: tag), commit.isApplied, let made = commit.made { return made }
      } else {
        // Until the store can be read again, the feed may still show the commit.
        ownCommits[tag]?.isUnknown = true
      }
      throw error
    }
  }

  private func hasCaughtUp(in engine: isolated Engine) async -> Bool {
    do throws(StoreError) {
      try await catchUp(in: engine)
      return true
    } catch {
      // The caller has an error of its own.
      return false
    }
  }

  private func waitUntilApplied(_ tag: StoreTag, isolation: isolated (any Actor)? = #isolation) async {
    guard !hasEnded, let commit = ownCommits[tag], !commit.isApplied else { return }
    await withCheckedContinuation { ownCommits[tag]?.waiter = $0 }
  }

  private func recordApplication(of commit: StoreCommit) {
    ownCommits[commit.tag]?.isApplied = true
    ownCommits[commit.tag]?.made = commit
    ownCommits[commit.tag]?.waiter.take()?.resume()
  }

  // MARK: - Reading

  /// Returns the stored value; `nil` if there is none, or none that can be decoded.
  func load<Value>(
    _ key: StoreKey<Value>, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> StoredValue<Value>? {
    do throws(StoreError) {
      return try await store.load(key)
    } catch {
      guard case .undecodable = error else { throw error }
      return nil
    }
  }

  /// Applies the stored value of a key, if the store hasn't reported it yet.
  func receiveUnreported(_ cell: SyncCell<Source>, in engine: isolated Engine) async {
    do throws(StoreError) {
      guard let stored = try await load(cell.storeKey), stored.tag != cell.state.base?.tag else { return }
      try await catchUp(in: engine)
    } catch {
      events.emit(.storeFailed(error))
    }
  }

  // MARK: - Applying

  /// Returns whether a cell is published later, because elements are being applied.
  func postponesPublishing(_ cell: SyncCell<Source>) -> Bool {
    guard isApplying else { return false }
    if !cellsToPublish.contains(where: { $0 === cell }) { cellsToPublish.append(cell) }
    return true
  }

  private func receive(_ element: StoreFeedElement, in engine: isolated Engine) {
    if case .caughtUp = element {
      receivedMarkers += 1
    } else if store.feedIsWhole {
      apply([element], in: engine)
    } else {
      // A sign-out doesn't wait, because nothing of the user may be shown after it.
      if case .committed(let transaction) = element {
        for change in transaction.changes { engine.users.receive(change, in: engine) }
      }
      kept.append(element)
      applyKeptSoon(in: engine)
    }
    resumeWaiters()
  }

  /// Starts a task that applies what a feed that tears commits has reported, unless one is running.
  private func applyKeptSoon(in engine: isolated Engine) {
    guard !isApplyingKept else { return }
    isApplyingKept = true
    engine.start { engine in
      await engine.keepTrying { (engine) async throws(StoreError) in
        while !engine.feed.kept.isEmpty, !engine.feed.hasEnded { try await engine.feed.catchUp(in: engine) }
      }
      engine.feed.isApplyingKept = false
    }
  }

  /// Applies what a feed that tears commits has reported, with the commits that this repository has made meanwhile.
  private func applyKept(in engine: isolated Engine) {
    let elements = kept
    kept = []
    let unapplied = ownCommits.values.filter { !$0.isApplied }.compactMap(\.made)
    apply(elements, own: unapplied.sorted { $0.revision < $1.revision }, in: engine)
    resumeWaiters()
  }

  /// Applies elements in one step.
  ///
  /// - Parameters:
  ///   - elements: The elements.
  ///   - ownCommits: Commits of this repository that the elements don't show as such, by revision.
  ///   - engine: The engine.
  private func apply(_ elements: [StoreFeedElement], own ownCommits: [StoreCommit] = [], in engine: isolated Engine) {
    isApplying = true
    engine.sender.beginBatch()
    var ownCommits = ownCommits[...]
    // A sign-out precedes everything else, because nothing of the user may be shown after it.
    for case .committed(let transaction) in elements {
      for change in transaction.changes { engine.users.receive(change, in: engine) }
    }
    for element in elements {
      switch element {
      case .began(let part, let changes):
        if let count = voidBeginnings[part] {
          voidBeginnings[part] = count > 1 ? count - 1 : nil
        } else {
          beginnings.removeValue(forKey: part)?(changes, engine)
        }
      case .committed(let transaction):
        while let next = ownCommits.first, next.revision <= transaction.revision {
          apply(ownCommits.removeFirst(), in: engine)
        }
        apply(transaction, in: engine)
      case .caughtUp: break
      }
    }
    for commit in ownCommits { apply(commit, in: engine) }
    isApplying = false
    let cells = cellsToPublish
    cellsToPublish = []
    for cell in cells { engine.publish(cell) }
    engine.performer.reportChanges(in: engine)
    engine.sender.pump(in: engine)
    engine.sender.endBatch(in: engine)
  }

  /// Applies a commit of this repository.
  private func apply(_ commit: StoreCommit, in engine: isolated Engine) {
    engine.writes.apply(commit, in: engine)
    recordApplication(of: commit)
  }

  private func apply(_ transaction: StoreTransaction, in engine: isolated Engine) {
    let tags = transaction.ownTag.map { [$0] } ?? transaction.savedTags
    let ownTags = tags.filter { ownCommits[$0] != nil }
    for tag in ownTags { engine.writes.apply(StoreCommit(transaction, tag: tag), in: engine) }
    for change in transaction.changes where change.key.collection == engine.name { receiveValue(change, in: engine) }
    engine.reader.receive(transaction.changes, in: engine) { change in
      let tag = if case .saved(_, let stored) = change { stored.tag } else { transaction.ownTag }
      guard let commit = tag.flatMap({ ownCommits[$0] }) else { return .external }
      return change.key.id.map { commit.added.contains(MutationID(rawValue: $0)) } ?? false ? .addition : .own
    }
    for tag in ownTags { recordApplication(of: StoreCommit(transaction, tag: tag)) }
  }

  private func receiveValue(_ change: StoreFeedChange, in engine: isolated Engine) {
    guard let cell = change.key.id.flatMap({ Source.Key(storeID: $0) }).flatMap(engine.cell) else { return }
    guard cell.isOpen else {
      // An element of an earlier following of the key precedes what the cell begins with.
      if beginnings[.key(change.key)] == nil { engine.begin(cell, change) }
      return
    }
    switch change {
    case .saved:
      guard let stored = change.stored(for: cell.storeKey) else { return }
      cell.receive(.saved(cell.storeKey, stored))
    case .removed(_, let revision): cell.receive(.removed(cell.storeKey, revision: revision))
    // Observers keep the last value that this program could read.
    case .unusable: return
    }
    engine.publish(cell)
  }
}

extension StoreTransaction {
  /// The tags of the saves.
  fileprivate var savedTags: [StoreTag] {
    var tags: [StoreTag] = []
    for case .saved(_, let stored) in changes where !tags.contains(stored.tag) { tags.append(stored.tag) }
    return tags
  }
}

extension StoreCommit {
  /// The commit that an element of a feed shows.
  fileprivate init(_ transaction: StoreTransaction, tag: StoreTag) {
    var (savedAt, byteCounts) = (Date?.none, [StoreKeyName: Int]())
    for case .saved(let key, let stored) in transaction.changes where stored.tag == tag {
      (savedAt, byteCounts[key]) = (stored.savedAt, stored.byteCount)
    }
    self.init(
      revision: transaction.revision, tag: tag, savedAt: savedAt ?? .distantPast, byteCounts: byteCounts)
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
