internal import DataStore

/// One value of a repository: its base, the mutations applied to it, and the replies waiting to be stored.
///
/// A pure state machine: methods record events, and properties are what observers should see.
///
/// The base is the stored value. Observers see the base with all pending mutations applied in order. Once the key is
/// open, the base changes in only two cases: a write of this repository was committed, or another writer changed the
/// store. While this program can't read what is stored, the base is the last value that it could read, with the
/// mutations that the stored value includes.
///
/// ## The life of a mutation
/// 1. ``add(_:_:)`` applies it, which makes it visible.
/// 2. ``beginSending(_:)`` and ``fail(_:)`` record the beginning and the failure of each attempt.
/// 3. ``receive(_:requestedAt:)`` records a reply, which ``beginWriting()`` judges. If the reply is accepted, it
///    changes the base, and the mutation is removed in the same commit. Otherwise the mutation enters the phase
///    `confirmed`: it stays applied on top of the base. The phase ends with a fetch of the whole value that began after
///    the reply had arrived: when the fetched value is accepted, or the server refuses to return it. The phase also
///    ends if another mutation is sent after that arrival, and its reply is a value that is accepted.
/// 4. ``remove(_:)`` rolls it back if it was refused or cancelled, or if the server reported a conflict. The function
///    also ends a mutation that the value of another writer includes. ``fold()`` rolls back a waiting mutation that
///    isn't possible on the base.
///
/// Unless it is rolled back or can't be applied, a mutation is therefore visible from the moment it is made until the
/// base includes it. It is never applied twice, as far as the replies show what the base includes.
///
/// - Complexity: A change of the base applies all pending mutations of the value again. The exception is a reply that
///   confirms the first of them with ``MutationReply/done`` or with the value that this mutation produces, because
///   observers then see no change.
struct SyncState<Value: Equatable & Sendable, Mutation: RepositoryMutation<Value>> {
  typealias Timestamp = VersionBarriers.Timestamp

  /// The stored value.
  struct Base {
    let value: Value
    let tag: StoreTag
    let revision: UInt64
  }

  /// A mutation that isn't possible on the current base.
  struct ConflictedMutation {
    let id: MutationID
    let conflict: MutationConflict
  }

  private struct Arrival {
    let reply: Reply
    let arrivedAt: Timestamp
  }

  /// A write in progress, and the state that is restored if it fails.
  private struct Writing {
    let write: Write
    let arrivals: [Arrival]
    let versions: VersionBarriers
    let recentChanges: RecentChanges<Value>
    /// The revision of the last change by another writer since the write began, if any.
    var externalRevision: UInt64?
    /// The time of the last replacement of the base by another writer since the write began, if any.
    var replacedAt: Timestamp?
  }

  private(set) var base: Base?
  /// The base as it was fetched; `nil` if no mutation has changed it since, as far as this process knows.
  ///
  /// Always `nil` unless ``isPaged``, because only pages are joined to it.
  private(set) var fetched: Value?
  /// The revision of the last change of the base.
  private var revision: UInt64 = 0
  private var pending = PendingMutationList<Mutation>()
  private var versions = VersionBarriers()
  private var recentChanges = RecentChanges<Value>()
  private var arrivals: [Arrival] = []
  private var writing: Writing?
  private var folded: Value?
  private var needsFold = false
  /// The visible value of ``visibleVersion``.
  private var shown: Value?
  private var mayDifferFromShown = false
  /// Whether ``empty`` remains visible when nothing is pending, because it was visible before.
  private var showsEmpty = false
  /// The mutations that are in flight or confirmed, but have no effect because they aren't possible on the current
  /// base.
  private var hidden: Set<MutationID> = []
  /// The conflicts that ``fold()`` hasn't returned yet.
  private var conflicts: [ConflictedMutation] = []

  /// The number of times that ``fold()`` has changed the visible value.
  private(set) var visibleVersion: UInt64 = 0

  /// The value that mutations are applied to if nothing is stored.
  private let empty: Value?

  /// Whether values are joined from pages.
  private let isPaged: Bool

  init(empty: Value? = nil, isPaged: Bool = false) {
    (self.empty, self.isPaged) = (empty, isPaged)
  }

  /// For a value that is joined from pages, the base as it was fetched, without the changes of mutations since.
  var baseAsFetched: Value? { fetched ?? base?.value }

  /// The value that observers should see, valid after ``fold()``; `nil` if there is none.
  var visible: Value? { folded }

  /// Whether there are mutations that the base doesn't include.
  var isPending: Bool { !pending.isEmpty }

  /// The number of times that a pending mutation was added or removed.
  var pendingVersion: UInt64 { pending.version }

  /// The pending mutations in order.
  var pendingMutations: [Mutation] { pending.all.map(\.mutation) }

  /// Whether a mutation is pending.
  func contains(_ id: MutationID) -> Bool { pending[id] != nil }

  /// Whether a confirmed mutation waits for a whole value.
  var needsWholeValue: Bool { pending.confirmedCount > 0 }

  /// The ids of the confirmed mutations that wait for a whole value, in order.
  var idsThatNeedWholeValue: [MutationID] {
    pending.confirmed.map(\.id)
  }

  /// Whether replies wait to be judged.
  var hasReplies: Bool { !arrivals.isEmpty }

  /// Whether replies to fetches wait to be judged.
  var hasFetchReplies: Bool {
    arrivals.contains { arrival in
      switch arrival.reply.content {
      case .fetched, .refused: true
      case .mutation: false
      }
    }
  }

  /// Whether a mutation ends with the write in progress.
  func isBeingConfirmed(_ id: MutationID) -> Bool { writing?.write.confirmed.contains(id) ?? false }

  // MARK: - Stored value

  /// Records the value that was stored when the key was opened.
  mutating func open(_ stored: Base?) {
    (base, fetched, showsEmpty) = (stored, nil, false)
    revision = stored?.revision ?? 0
    invalidateVisible()
  }

  /// Whether a change with this revision is newer than the base.
  func isNew(_ revision: UInt64) -> Bool { revision > self.revision }

  /// Records that another writer stored or removed the value.
  ///
  /// Replies to requests that began before this call are no longer accepted. If a write is in progress, its value must
  /// not be the stored one, nor have been replaced by it. The write then fails, because its commit requires the earlier
  /// base.
  ///
  /// - Parameters:
  ///   - stored: The stored value; `nil` after a removal.
  ///   - revision: The revision of the change. A revision that isn't newer than the base has no effect.
  /// - Returns: Whether the change had an effect.
  @discardableResult
  mutating func receiveExternal(_ stored: Base?, revision: UInt64) -> Bool {
    guard revision > self.revision else { return false }
    // An equal value changes nothing, so replies in flight are as new as before.
    if stored?.value == nil || stored?.value != base?.value {
      let replacedAt = versions.now()
      versions.recordReplacement(at: replacedAt)
      writing?.replacedAt = replacedAt
      fetched = nil
    }
    writing?.externalRevision = revision
    (base, self.revision, showsEmpty) = (stored, revision, false)
    invalidateVisible()
    return true
  }

  /// Records that another writer has removed the value, or replaced it by one that can't be decoded.
  ///
  /// The revision stays that of the last change, because the revision of a removal isn't known here, and a value that
  /// can't be decoded has none.
  mutating func removeBase() {
    guard base != nil else { return }
    (base, fetched, showsEmpty) = (nil, nil, false)
    versions.recordReplacement(at: versions.now())
    invalidateVisible()
  }

  // MARK: - Mutations

  /// Applies a new mutation on top of all others.
  ///
  /// If there is neither a base nor ``empty``, the mutation becomes visible once a value is stored. If the mutation is
  /// already pending, nothing changes.
  ///
  /// - Throws: The error that `apply(to:)` throws for the visible value, or for ``empty`` if nothing is visible. The
  ///   mutation is then not added.
  mutating func add(_ id: MutationID, _ mutation: Mutation) throws(MutationConflict) {
    guard !contains(id) else { return }
    foldIfNeeded()
    if var value = folded ?? (base == nil ? empty : nil) {
      // Releases this copy of the value, so that the mutation can change the other one in place.
      folded = nil
      do throws(MutationConflict) {
        try mutation.apply(to: &value)
      } catch {
        // The mutation may have changed a part of the value before it threw.
        needsFold = true
        foldIfNeeded()
        throw error
      }
      (folded, mayDifferFromShown) = (value, true)
      showsEmpty = base == nil
    }
    pending.append(.init(id: id, mutation: mutation, phase: .waiting))
  }

  /// Adds a mutation that is already durable, for example because an earlier process or another writer made it.
  mutating func restore(_ id: MutationID, _ mutation: Mutation) {
    guard !contains(id) else { return }
    pending.append(.init(id: id, mutation: mutation, phase: .waiting))
    invalidateVisible()
  }

  /// Removes a mutation that was rolled back, or that the value of another writer includes.
  mutating func remove(_ id: MutationID) {
    if pending.remove(id) != nil { invalidateVisible() }
  }

  /// Ends a mutation that the stored value includes, although this program can't read that value.
  ///
  /// The mutation becomes a part of the base, so that it stays visible until there is a value that can be read.
  mutating func absorb(_ id: MutationID) {
    guard let item = pending.remove(id) else { return }
    if let old = base, let value = item.mutation.applied(to: old.value) {
      (base, fetched) = (Base(value: value, tag: old.tag, revision: old.revision), nil)
      versions.recordReplacement(at: versions.now())
    }
    invalidateVisible()
  }

  /// Records that an attempt to send a mutation begins.
  mutating func beginSending(_ id: MutationID) -> Timestamp {
    pending.setPhase(.inFlight, of: id)
    return versions.now()
  }

  /// Records that an attempt to send a mutation failed.
  mutating func fail(_ id: MutationID) {
    guard let item = pending[id], case .inFlight = item.phase else { return }
    pending.setPhase(.waiting, of: id)
    // The server no longer decides whether the mutation is possible, so it may be in conflict now.
    if hidden.contains(id) { invalidateVisible() }
  }

  // MARK: - Replies

  /// Records that a fetch begins, which ends with ``endFetching(_:)``.
  mutating func beginFetching() -> Timestamp {
    let request = versions.now()
    recentChanges.beginFetch(at: request, .init(value: base?.value, fetched: fetched))
    return request
  }

  /// Records that a fetch has ended: it has failed, or its reply was judged.
  mutating func endFetching(_ request: Timestamp) { recentChanges.endFetch(at: request) }

  /// Returns whether the base is, or is joined from, a value that was requested after a timestamp.
  ///
  /// - Parameter isWhole: Whether only whole values count.
  func isRefreshed(since timestamp: Timestamp, isWhole: Bool) -> Bool {
    versions.isRefreshed(since: timestamp, isWhole: isWhole)
  }

  /// Records a reply that has arrived, for ``beginWriting()`` to judge.
  mutating func receive(_ content: Reply.Content, requestedAt: Timestamp) {
    let reply = Reply(content: content, requestedAt: requestedAt)
    arrivals.append(Arrival(reply: reply, arrivedAt: versions.now()))
  }

  /// Judges all replies that have arrived, in the order of their arrival, and returns the resulting write.
  ///
  /// The write is in progress until ``commit(revision:tag:)`` or ``abandon(keepsFetches:)`` is called.
  ///
  /// - Returns: The write; `nil` if no reply has arrived, or a write is in progress.
  mutating func beginWriting() -> Write? {
    guard writing == nil, !arrivals.isEmpty else { return nil }
    let (judgedArrivals, earlierVersions, earlierChanges) = (arrivals, versions, recentChanges)
    arrivals = []
    var judgement = ReplyJudgement(
      base: base?.value, fetched: fetched, visible: folded, tag: base?.tag, pending: pending, versions: versions,
      recentChanges: recentChanges, empty: empty, isPaged: isPaged)
    // Releases this copy of the list, because the judgement changes its own.
    pending = PendingMutationList()
    for arrival in judgedArrivals { judgement.judge(arrival.reply, arrivedAt: arrival.arrivedAt) }
    (pending, versions, recentChanges) = (judgement.pending, judgement.versions, judgement.recentChanges)
    let write = judgement.write
    writing = Writing(
      write: write, arrivals: judgedArrivals, versions: earlierVersions, recentChanges: earlierChanges)
    return write
  }

  /// Records that the write is durable.
  ///
  /// The base changes, and the mutations that end with the write are removed, in one step.
  mutating func commit(revision: UInt64, tag: StoreTag) {
    guard let ended = writing else { return }
    writing = nil
    let write = ended.write
    // The commit fails if another writer has changed the base. This is a precaution against a store that makes it.
    if let value = write.value, ended.externalRevision ?? 0 < revision {
      (base, fetched, self.revision) = (Base(value: value, tag: tag, revision: revision), write.fetched, revision)
      showsEmpty = false
    }
    for id in write.confirmed { pending.remove(id) }
    // The visible value may change because of the write, or of an earlier change that `fold()` hasn't handled yet.
    if !write.keepsVisible || needsFold || ended.externalRevision != nil { invalidateVisible() }
  }

  /// Records that the write failed.
  ///
  /// The replies to mutations are judged again for the next write. So are the replies to fetches if `keepsFetches` is
  /// `true`. Otherwise those are discarded.
  mutating func abandon(keepsFetches: Bool) {
    guard let earlier = writing else { return }
    writing = nil
    versions.restoreBarriers(of: earlier.versions)
    if let replacedAt = earlier.replacedAt { versions.recordReplacement(at: replacedAt) }
    recentChanges.restoreChanges(of: earlier.recentChanges)
    let kept = earlier.arrivals.filter { arrival in
      switch arrival.reply.content {
      case .fetched, .refused: keepsFetches
      case .mutation: true
      }
    }
    arrivals = kept + arrivals
  }

  /// Discards the replies to some mutations, because the resulting value can't be stored.
  ///
  /// - Returns: Whether other replies are waiting.
  mutating func discardReplies(to ids: [MutationID]) -> Bool {
    arrivals.removeAll { arrival in
      if case .mutation(let id, _, _) = arrival.reply.content { ids.contains(id) } else { false }
    }
    return !arrivals.isEmpty
  }

  /// Discards all replies that wait to be judged.
  ///
  /// - Returns: The numbers of the fetches whose replies were discarded.
  mutating func discardReplies() -> [Int] {
    defer { arrivals = [] }
    return arrivals.compactMap { arrival in
      switch arrival.reply.content {
      case .fetched(let number, _, _), .refused(let number): number
      case .mutation: nil
      }
    }
  }

  // MARK: - Visible value

  private mutating func invalidateVisible() {
    needsFold = true
  }

  /// Applies all pending mutations to the base, unless nothing has changed since the last call.
  ///
  /// If nothing is stored, the mutations are applied to ``empty``. If all of them are rolled back, ``empty`` itself
  /// stays visible, because observers would otherwise keep the last value they received.
  ///
  /// - Returns: The waiting mutations that aren't possible on the base, with the reasons. They are no longer pending. A
  ///   mutation that is in flight or confirmed stays pending without effect, because the server decides whether it is
  ///   possible.
  mutating func fold() -> [ConflictedMutation] {
    foldIfNeeded()
    if mayDifferFromShown {
      mayDifferFromShown = false
      if folded != shown { (shown, visibleVersion) = (folded, visibleVersion + 1) }
    }
    defer { conflicts = [] }
    return conflicts
  }

  private mutating func foldIfNeeded() {
    guard needsFold else { return }
    (needsFold, mayDifferFromShown) = (false, true)
    folded = nil
    hidden = []
    guard let start = base?.value ?? (pending.isEmpty && !showsEmpty ? nil : empty) else { return }
    folded = start
    showsEmpty = base == nil
    var continuesAfterConflicts = false
    // A mutation that throws may have changed a part of the value. After the first conflict, all mutations are
    // therefore applied again from the start, and the value is copied before each of them.
    while let conflicted = applyAll(to: start, continuesAfterConflicts: continuesAfterConflicts) {
      continuesAfterConflicts = true
      take(conflicted)
    }
  }

  /// Removes a waiting mutation that is in conflict, or hides one about which the server decides.
  private mutating func take(_ conflicted: ConflictedMutation) {
    if case .waiting = pending[conflicted.id]?.phase {
      pending.remove(conflicted.id)
      conflicts.append(conflicted)
    } else {
      hidden.insert(conflicted.id)
    }
  }

  /// Applies all pending mutations to a value, which becomes the visible value.
  ///
  /// - Parameters:
  ///   - start: The value.
  ///   - continuesAfterConflicts: Whether to remove or hide each mutation that is in conflict, and to continue with a
  ///     copy of the value from before it.
  /// - Returns: The first mutation in conflict; always `nil` if `continuesAfterConflicts` is `true`.
  private mutating func applyAll(to start: Value, continuesAfterConflicts: Bool) -> ConflictedMutation? {
    var value = start
    for item in Array(pending.all) where !hidden.contains(item.id) {
      let copy = continuesAfterConflicts ? value : nil
      do throws(MutationConflict) {
        try item.mutation.apply(to: &value)
      } catch {
        let conflicted = ConflictedMutation(id: item.id, conflict: error)
        guard let copy else { return conflicted }
        value = copy
        take(conflicted)
      }
    }
    folded = value
    return nil
  }
}
