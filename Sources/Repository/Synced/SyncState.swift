internal import DataStore

/// One value of a repository: its base, the mutations over it, and the replies that wait to be stored.
///
/// A pure state machine: methods record events, and properties are what observers should see.
///
/// The base is what the store holds. What observers see is the base with all pending mutations applied in order. The base
/// changes in two ways only: a write of this repository was committed, or another writer changed the store.
///
/// ## The life of a mutation
/// 1. ``add(_:_:)`` applies it: it shows.
/// 2. ``beginSending(_:)`` and ``fail(_:isOutcomeUnknown:)`` bracket the attempts that fail.
/// 3. ``receive(_:from:)`` takes a reply. When its turn to be written comes, it is judged: an accepted reply changes the base,
///    and the mutation leaves in the same commit. Otherwise the mutation is confirmed, stays over the base, and leaves
///    with the next whole value whose request began later.
/// 4. ``remove(_:)`` takes it back if it was refused, cancelled or conflicted.
///
/// So a mutation shows from its first moment until the base has it, and never twice where that can be known.
///
/// - Complexity: A change of the base costs the application of all pending mutations of this value, unless it is the
///   confirmation of the first ones by ``MutationReply/done``, which changes nothing that is seen.
struct SyncState<Value: Equatable & Sendable, Mutation: RepositoryMutation<Value>> {
  typealias Timestamp = VersionBarriers.Timestamp

  /// What the store holds.
  struct Base {
    let value: Value
    let tag: StoreTag
    let revision: UInt64
  }

  /// A mutation that isn't possible on the present base.
  struct Conflict {
    let id: MutationID
    let conflict: MutationConflict
  }

  private struct Arrival {
    let reply: Reply
    let arrivedAt: Timestamp
  }

  private(set) var base: Base?
  /// The base as it was fetched; `nil` if nothing has changed it since, as far as this process knows.
  private var fetched: Value?
  /// The revision of the newest change of the base.
  private var revision: UInt64 = 0
  private var pending = PendingMutationList<Mutation>()
  private var versions = VersionBarriers()
  private var arrivals: [Arrival] = []
  /// The write that is being made, and what is restored if it fails.
  private var writing: (write: Write, arrivals: [Arrival], versions: VersionBarriers)?
  private var folded: Value?
  private var needsFold = false
  /// Whether ``empty`` was shown, so that it is what remains when nothing is pending.
  private var showsEmpty = false
  /// The mutations that are at the server, but aren't possible on the present base.
  private var hidden: Set<MutationID> = []
  /// The conflicts that were not returned yet.
  private var conflicts: [Conflict] = []

  /// Counts the changes of what observers should see.
  private(set) var visibleVersion: UInt64 = 0

  /// What mutations are applied to where nothing is stored.
  private let empty: Value?

  /// Whether values are joined from pages.
  private let isPaged: Bool

  /// Whether a value is all that the server has, so that what isn't in it isn't anywhere.
  private let isComplete: (Value) -> Bool

  init(empty: Value? = nil, isPaged: Bool = false, isComplete: @escaping (Value) -> Bool = { _ in true }) {
    self.empty = empty
    self.isPaged = isPaged
    self.isComplete = isComplete
  }

  /// The base as it was fetched.
  var baseAsFetched: Value? { fetched ?? base?.value }

  /// What observers should see, after ``fold()``; `nil` if there is nothing.
  var visible: Value? { folded }

  /// Whether the user intends something that the base doesn't have.
  var isPending: Bool { !pending.isEmpty }

  /// Counts the changes of what is pending.
  var pendingVersion: UInt64 { pending.version }

  /// The pending mutations in order.
  var pendingMutations: [Mutation] { pending.all.map(\.mutation) }

  /// The ids of the pending mutations in order.
  var pendingIDs: [MutationID] { pending.all.map(\.id) }

  /// Whether a mutation is pending.
  func contains(_ id: MutationID) -> Bool { pending[id] != nil }

  /// Whether a confirmed mutation waits for a whole value.
  var needsWholeValue: Bool { pending.confirmedCount > 0 }

  /// The confirmed mutations that wait for a whole value, in order.
  var idsThatNeedWholeValue: [MutationID] {
    pending.uncertain.filter { if case .confirmed = $0.phase { true } else { false } }.map(\.id)
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

  /// Whether a write is being made.
  var isWriting: Bool { writing != nil }

  /// Whether the write that is being made has a mutation.
  func isBeingConfirmed(_ id: MutationID) -> Bool { writing?.write.confirmed.contains(id) ?? false }

  // MARK: - The store

  /// Records what was stored when the value was opened.
  mutating func open(_ stored: Base?) {
    (base, fetched, showsEmpty) = (stored, nil, false)
    revision = stored?.revision ?? 0
    invalidate()
  }

  /// Whether a change with this revision is newer than the base.
  func isNew(_ revision: UInt64) -> Bool { revision > self.revision }

  /// Records what another writer stored or removed: no reply to an earlier request is accepted any more.
  ///
  /// - Parameters:
  ///   - stored: What is stored; `nil` after a removal.
  ///   - revision: The revision of the change. One that isn't newer than the base changes nothing.
  mutating func receiveExternal(_ stored: Base?, revision: UInt64) {
    guard revision > self.revision else { return }
    (base, fetched, self.revision, showsEmpty) = (stored, nil, revision, false)
    versions.overtake(at: versions.now())
    invalidate()
  }

  // MARK: - Mutations

  /// Applies a new mutation on top of all others.
  ///
  /// - Throws: What `apply(to:)` throws on what is visible; then nothing changes.
  mutating func add(_ id: MutationID, _ mutation: Mutation) throws(MutationConflict) {
    refold()
    if var value = folded ?? (base == nil ? empty : nil) {
      folded = nil
      do throws(MutationConflict) {
        try mutation.apply(to: &value)
      } catch {
        // It may have changed a part of the value.
        needsFold = true
        refold()
        throw error
      }
      folded = value
      showsEmpty = base == nil
      visibleVersion += 1
    }
    pending.append(.init(id: id, mutation: mutation, phase: .waiting(unknownSince: nil)))
  }

  /// Adds a mutation that is durable: one of an earlier process, or of another writer.
  mutating func restore(_ id: MutationID, _ mutation: Mutation) {
    guard !contains(id) else { return }
    pending.append(.init(id: id, mutation: mutation, phase: .waiting(unknownSince: nil)))
    invalidate()
  }

  /// Takes a mutation back: it was refused, cancelled or conflicted.
  mutating func remove(_ id: MutationID) {
    if pending.remove(id) != nil { invalidate() }
  }

  /// Records that an attempt to send a mutation begins.
  mutating func beginSending(_ id: MutationID) -> Timestamp {
    pending.setPhase(.inFlight, of: id)
    return versions.now()
  }

  /// Records that an attempt failed.
  mutating func fail(_ id: MutationID, isOutcomeUnknown: Bool) {
    guard let item = pending[id], case .inFlight = item.phase else { return }
    // A value that shows the mutation proves nothing if those before it have the same effect.
    let before = isOutcomeUnknown ? valueBefore(id) : nil
    let isProvable = before.map { !isComplete($0) || !item.mutation.hasNoEffect(on: $0) } ?? false
    pending.setPhase(.waiting(unknownSince: isProvable ? versions.now() : nil), of: id)
    // It is no longer for the server to decide whether it is possible.
    if hidden.contains(id) { invalidate() }
  }

  /// The base with the pending mutations before one.
  private func valueBefore(_ id: MutationID) -> Value? {
    guard var value = base?.value else { return nil }
    for item in pending.all where !hidden.contains(item.id) {
      if item.id == id { break }
      guard let next = item.mutation.applied(to: value) else { return nil }
      value = next
    }
    return value
  }

  // MARK: - Replies

  /// Records that a fetch begins.
  mutating func beginFetching() -> Timestamp { versions.now() }

  /// Records the arrival of a reply, which is judged by the next write.
  mutating func receive(_ content: Reply.Content, requestedAt: Timestamp) {
    let reply = Reply(content: content, requestedAt: requestedAt)
    arrivals.append(Arrival(reply: reply, arrivedAt: versions.now()))
  }

  /// Judges all replies that have arrived, in the order they arrived, and returns what to commit for them.
  ///
  /// The write is being made until ``commit(revision:tag:)`` or ``abandon(keepsFetches:)``.
  ///
  /// - Returns: `nil` if no reply has arrived, or a write is being made.
  mutating func beginWriting() -> Write? {
    guard writing == nil, !arrivals.isEmpty else { return nil }
    let (taken, before) = (arrivals, versions)
    arrivals = []
    var judgement = ReplyJudgement(
      base: base?.value, fetched: fetched, tag: base?.tag, pending: pending, versions: versions, empty: empty,
      isPaged: isPaged, isComplete: isComplete)
    // The judgement's list alone, so that its changes copy nothing.
    pending = PendingMutationList()
    for arrival in taken { judgement.judge(arrival.reply, arrivedAt: arrival.arrivedAt) }
    (pending, versions) = (judgement.pending, judgement.versions)
    let write = judgement.write
    writing = (write, taken, before)
    return write
  }

  /// Records that the write is durable: the base and the mutations that it has change in one step.
  mutating func commit(revision: UInt64, tag: StoreTag) {
    guard let (write, _, _) = writing else { return }
    writing = nil
    if let value = write.value {
      (base, fetched, self.revision) = (Base(value: value, tag: tag, revision: revision), write.fetched, revision)
      showsEmpty = false
    }
    for id in write.confirmed { pending.remove(id) }
    if !write.keepsVisible || needsFold {
      invalidate()
    } else if write.isRefreshed {
      // Observers get each value that the server sent, also if it is what they expected.
      visibleVersion += 1
    }
  }

  /// Records that the write was not made.
  ///
  /// The replies to mutations are judged again by the next write, and so are those to fetches if `keepsFetches` is true.
  mutating func abandon(keepsFetches: Bool) {
    guard let (_, taken, before) = writing else { return }
    writing = nil
    versions.restoreBarriers(of: before)
    let kept = taken.filter { arrival in
      switch arrival.reply.content {
      case .fetched, .refused: keepsFetches
      case .mutation: true
      }
    }
    arrivals = kept + arrivals
  }

  /// Discards the replies to mutations that wait to be judged again, because what they bring can't be stored.
  ///
  /// - Returns: Whether other replies wait.
  mutating func discardReplies(to ids: [MutationID]) -> Bool {
    arrivals.removeAll { arrival in
      if case .mutation(let id, _, _) = arrival.reply.content { ids.contains(id) } else { false }
    }
    return !arrivals.isEmpty
  }

  /// Discards all replies that wait to be judged.
  ///
  /// - Returns: The numbers of the fetches among them.
  mutating func discardReplies() -> [Int] {
    defer { arrivals = [] }
    return arrivals.compactMap { arrival in
      switch arrival.reply.content {
      case .fetched(let number, _, _), .refused(let number): number
      case .mutation: nil
      }
    }
  }

  // MARK: - What observers see

  private mutating func invalidate() {
    needsFold = true
    visibleVersion += 1
  }

  /// Applies all pending mutations to the base, unless nothing has changed since.
  ///
  /// Where nothing is stored, they are applied to ``empty``. That stays visible when they are taken back, because observers
  /// would keep what they saw.
  ///
  /// - Returns: The mutations that aren't possible on the new base, with the reasons. They are no longer pending. One that
  ///   is being sent or is confirmed stays, because the server decides what becomes of it, but has no effect meanwhile.
  mutating func fold() -> [Conflict] {
    refold()
    defer { conflicts = [] }
    return conflicts
  }

  private mutating func refold() {
    guard needsFold else { return }
    needsFold = false
    folded = nil
    hidden = []
    guard let start = base?.value ?? (pending.isEmpty && !showsEmpty ? nil : empty) else { return }
    folded = start
    showsEmpty = base == nil
    var isCareful = false
    // What throws may have changed a part of the value, so the first conflict begins anew, with a copy before each step.
    while let conflict = applyAll(to: start, isCareful: isCareful) {
      isCareful = true
      take(conflict)
    }
  }

  private mutating func take(_ conflict: Conflict) {
    if case .waiting = pending[conflict.id]?.phase {
      pending.remove(conflict.id)
      conflicts.append(conflict)
    } else {
      hidden.insert(conflict.id)
    }
  }

  /// Applies all pending mutations to a value, which is visible then.
  ///
  /// - Parameter isCareful: Whether conflicts are taken in, and the value goes on without them.
  /// - Returns: The first conflict, if it isn't careful.
  private mutating func applyAll(to start: Value, isCareful: Bool) -> Conflict? {
    var value = start
    for item in Array(pending.all) where !hidden.contains(item.id) {
      let copy = isCareful ? value : nil
      do throws(MutationConflict) {
        try item.mutation.apply(to: &value)
      } catch {
        let conflict = Conflict(id: item.id, conflict: error)
        guard let copy else { return conflict }
        value = copy
        take(conflict)
      }
    }
    folded = value
    return nil
  }
}
