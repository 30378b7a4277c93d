internal import DataStore

/// Judges the replies that have arrived for one value, one after the other, and collects the resulting write.
///
/// A part of ``SyncState``, which passes its state in and takes the result back. Each reply is judged against the base
/// that results from the replies before it:
/// - A fetched value is accepted if it fits the base and is certainly newer, equals it, or can be joined with the
///   changes that were accepted meanwhile; see ``VersionBarriers``. A whole value then includes, and so ends, each
///   mutation that was confirmed before the value was requested.
/// - If the server refuses to return the whole value, the mutations that were confirmed before the request began are
///   applied to the base.
/// - The reply to a mutation is accepted only if it can't repeat the reply to an earlier attempt. If it is a value,
///   that must certainly be newer than the base. Any other reply requires that the base includes every earlier
///   confirmed mutation, and certainly doesn't include the change yet. A `done` is also accepted if the mutation makes
///   no difference the second time that it is applied. If the reply isn't accepted, the mutation enters the phase
///   `confirmed`, and stays applied on top of the base until a whole value includes it.
///
/// A mutation in the phase `confirmed` is one that the server has and the base may lack. To *confirm* a mutation here
/// means to end it with this write; see ``SyncState/Write/confirmed``.
///
/// - Complexity: O(*k* log *k*) for each reply, where *k* is the number of mutations that are confirmed, plus the
///   application of the mutation or the merging of the fetched value.
struct ReplyJudgement<Value: Equatable & Sendable, Mutation: RepositoryMutation<Value>> {
  typealias State = SyncState<Value, Mutation>
  typealias Timestamp = VersionBarriers.Timestamp
  typealias Item = PendingMutationList<Mutation>.Item

  private(set) var pending: PendingMutationList<Mutation>
  private(set) var versions: VersionBarriers
  private(set) var recentChanges: RecentChanges<Value>
  private var base: Value?
  /// The base as it was fetched; `nil` if no mutation has changed it since.
  private var fetched: Value?
  /// The value that observers see.
  private let visible: Value?
  private var isBaseChanged = false
  /// The write so far, without the new base, which ``write`` adds.
  private var partialWrite: State.Write
  private var confirmedByWrite: Set<MutationID> = []
  /// Iterates over the pending mutations in order, to check whether the replies confirm them from the front.
  private let pendingIterator: AnyIterator<Item>
  private let empty: Value?
  private let isPaged: Bool

  /// - Parameters:
  ///   - base: The base; `nil` if nothing is stored.
  ///   - fetched: The base as it was fetched; `nil` if no mutation has changed it since.
  ///   - visible: The value that observers see.
  ///   - tag: The tag of the base.
  ///   - pending: The pending mutations.
  ///   - versions: The barriers of the base.
  ///   - recentChanges: The changes that a fetched value may have to be joined with.
  ///   - empty: The value that mutations are applied to if nothing is stored.
  ///   - isPaged: Whether values are joined from pages.
  init(
    base: Value?, fetched: Value?, visible: Value?, tag: StoreTag?, pending: PendingMutationList<Mutation>,
    versions: VersionBarriers, recentChanges: RecentChanges<Value>, empty: Value?, isPaged: Bool
  ) {
    (self.base, self.fetched, self.visible, self.pending, self.versions) = (base, fetched, visible, pending, versions)
    (self.recentChanges, self.empty, self.isPaged) = (recentChanges, empty, isPaged)
    partialWrite = State.Write(baseTag: tag)
    pendingIterator = AnyIterator(pending.all.makeIterator())
  }

  /// The write that results from the replies judged so far.
  var write: State.Write {
    var write = partialWrite
    if isBaseChanged { (write.value, write.fetched) = (base, fetched) }
    return write
  }

  /// Judges the next reply.
  mutating func judge(_ reply: State.Reply, arrivedAt: Timestamp) {
    switch reply.content {
    case .fetched(let number, let extent, let merge):
      guard acceptFetched(merge, requestedAt: reply.requestedAt, arrivedAt: arrivedAt) else {
        partialWrite.rejected.append(number)
        return
      }
      partialWrite.accepted.append(number)
      if extent != .adjacentPage { recordRefresh(requestedAt: reply.requestedAt, isWhole: extent == .whole) }
      if extent == .whole { confirmAll(includedInValueRequestedAt: reply.requestedAt) }
    case .refused(let number):
      guard versions.acceptChange(requestedAt: reply.requestedAt, arrivedAt: arrivedAt) else {
        partialWrite.rejected.append(number)
        return
      }
      partialWrite.accepted.append(number)
      confirmWithoutValue(requestedAt: reply.requestedAt, arrivedAt: arrivedAt)
    case .mutation(let id, let content, let isTrusted):
      guard let item = pending[id], !confirmedByWrite.contains(id) else { return }
      if isTrusted, accept(content, of: item, requestedAt: reply.requestedAt, arrivedAt: arrivedAt) {
        confirm(id)
      } else {
        pending.setPhase(.confirmed(at: arrivedAt), of: id)
      }
    }
  }

  /// Replaces the base by a fetched value, or joins the value to it, if the result is certainly correct.
  ///
  /// - Returns: Whether the value was accepted.
  private mutating func acceptFetched(
    _ merge: State.Reply.Merge, requestedAt: Timestamp, arrivedAt: Timestamp
  ) -> Bool {
    let merged = merge(base, fetched, visible)
    let isNewer = versions.isNewer(requestedAt: requestedAt)
    if isNewer, let merged, let fetchedBefore = fetched {
      // The new base may still include changes that mutations made since the last fetch, so the fetched value is also
      // merged with the base as it was fetched.
      let newFetched = merge(fetchedBefore, nil, nil) ?? fetchedBefore
      fetched = newFetched == merged ? nil : newFetched
    }
    if let merged, merged == base {
      // It is stored again, because the store then has the time of the fetch.
      if isNewer { (base, isBaseChanged) = (merged, true) }
      return true
    }
    if isNewer, let merged {
      versions.recordReplacement(at: arrivedAt)
      replaceBase(with: merged)
    } else if versions.isNewerExceptForChanges(requestedAt: requestedAt),
      let earlier = recentChanges.base(at: requestedAt),
      let fetchedValue = merge(earlier.value, earlier.fetched, visible),
      let value = recentChanges.applied(to: fetchedValue, since: requestedAt)
    {
      versions.recordReplacement(at: arrivedAt)
      fetched = !isPaged || fetchedValue == value ? nil : fetchedValue
      replaceBase(with: value)
    } else {
      return false
    }
    recentChanges.removeAll()
    return true
  }

  private mutating func recordChange(of mutation: Mutation, at arrival: Timestamp) {
    recentChanges.append(at: arrival) { mutation.applied(to: $0) }
  }

  private mutating func recordRefresh(requestedAt: Timestamp, isWhole: Bool) {
    partialWrite.isRefreshed = true
    versions.recordRefresh(requestedAt: requestedAt, isWhole: isWhole)
  }

  /// Changes the base by the reply to a mutation, if the result is certainly correct.
  ///
  /// - Returns: Whether the reply was accepted. A reply without a value never is. A value isn't accepted if the base
  ///   may be newer. A patch or `done` isn't accepted if there is no base, or if the base may already include the
  ///   mutation or lacks an earlier confirmed one. Nor is `done` accepted if the mutation isn't possible on the base.
  ///   If there is no base and ``empty`` is `nil`, `done` can still be accepted, because it stores nothing.
  private mutating func accept(
    _ reply: MutationReply<Value>, of item: Item, requestedAt: Timestamp, arrivedAt: Timestamp
  ) -> Bool {
    switch reply {
    case .withoutValue: return false
    case .value(let value):
      guard versions.acceptValue(requestedAt: requestedAt, arrivedAt: arrivedAt) else { return false }
      // The visible value stays the same if the server did what was expected, which is the usual case in a long queue.
      if partialWrite.keepsVisible {
        partialWrite.keepsVisible = pendingIterator.next()?.id == item.id && value == applied(item.mutation)
      }
      (base, fetched, isBaseChanged) = (value, nil, true)
      recentChanges.removeAll()
      recordRefresh(requestedAt: requestedAt, isWhole: true)
      confirmAll(includedInValueRequestedAt: requestedAt)
      return true
    case .patch(let patch):
      guard var value = base, !isBehindConfirmed(item),
        versions.acceptChange(requestedAt: requestedAt, arrivedAt: arrivedAt)
      else { return false }
      keepFetched()
      // Releases a reference to the value, so that the patch doesn't have to copy it.
      base = nil
      patch(&value)
      replaceBase(with: value)
      recentChanges.append(at: arrivedAt) { base in
        var value = base
        patch(&value)
        return value
      }
      return true
    case .done:
      if isBehindConfirmed(item) { return false }
      // Without a base, there is nothing to store. If the mutation was applied to `empty`, it enters the phase
      // `confirmed`, and stays visible until the whole value is fetched.
      guard base != nil else {
        guard empty == nil, versions.acceptChange(requestedAt: requestedAt, arrivedAt: arrivedAt) else { return false }
        recordChange(of: item.mutation, at: arrivedAt)
        return true
      }
      guard let value = applied(item.mutation) else { return false }
      if !versions.acceptChange(requestedAt: requestedAt, arrivedAt: arrivedAt) {
        guard item.mutation.hasNoEffect(on: value) else { return false }
        versions.recordChange(at: arrivedAt)
      }
      keepFetched()
      (base, isBaseChanged) = (value, true)
      recordChange(of: item.mutation, at: arrivedAt)
      // The visible value stays the same if the mutation was the first of the remaining ones.
      if partialWrite.keepsVisible, pendingIterator.next()?.id != item.id { partialWrite.keepsVisible = false }
      return true
    }
  }

  /// Returns whether an earlier mutation is confirmed, but not included in the base.
  ///
  /// If the base included the later mutation but not the earlier one, the two would be applied in the wrong order.
  private func isBehindConfirmed(_ item: Item) -> Bool {
    guard pending.confirmedCount > 0 else { return false }
    return pending.confirmed.contains { $0.place < item.place && !confirmedByWrite.contains($0.id) }
  }

  private mutating func replaceBase(with value: Value) {
    (base, isBaseChanged) = (value, true)
    partialWrite.keepsVisible = false
  }

  /// Keeps a copy of the fetched base before a mutation first changes it, because joining a page requires that copy.
  private mutating func keepFetched() {
    if isPaged, fetched == nil { fetched = base }
  }

  private mutating func confirm(_ id: MutationID) {
    confirmedByWrite.insert(id)
    partialWrite.confirmed.append(id)
  }

  /// Confirms all mutations that an accepted whole value certainly includes.
  private mutating func confirmAll(includedInValueRequestedAt requestedAt: Timestamp) {
    for item in pending.confirmed where !confirmedByWrite.contains(item.id) {
      guard case .confirmed(let confirmedAt) = item.phase, confirmedAt < requestedAt else { continue }
      confirm(item.id)
      partialWrite.keepsVisible = false
    }
  }

  /// Confirms the mutations that the server had when it was asked for the whole value, which it refuses to return.
  ///
  /// No value will ever show them. Those that are possible on the base are applied to it.
  private mutating func confirmWithoutValue(requestedAt: Timestamp, arrivedAt: Timestamp) {
    for item in pending.confirmed where !confirmedByWrite.contains(item.id) {
      guard case .confirmed(let confirmedAt) = item.phase, confirmedAt < requestedAt else { continue }
      confirm(item.id)
      partialWrite.keepsVisible = false
      guard let value = applied(item.mutation) else { continue }
      keepFetched()
      (base, isBaseChanged) = (value, true)
      recordChange(of: item.mutation, at: arrivedAt)
    }
  }

  /// Returns the base with a mutation applied; `nil` if the mutation isn't possible on it.
  private func applied(_ mutation: Mutation) -> Value? {
    base.flatMap { mutation.applied(to: $0) }
  }
}

extension RepositoryMutation {
  /// Returns a value with the mutation applied; `nil` if the mutation isn't possible on it.
  func applied(to value: Value) -> Value? {
    var value = value
    do throws(MutationConflict) {
      try apply(to: &value)
    } catch {
      return nil
    }
    return value
  }
}

extension RepositoryMutation where Value: Equatable {
  /// Returns whether a value already has the change, so that applying the mutation doesn't alter it.
  func hasNoEffect(on value: Value) -> Bool { applied(to: value) == value }
}

extension SyncState {
  /// The extent of a fetched value.
  enum Extent {
    /// A value that replaces the base.
    ///
    /// It includes every change that was confirmed before its request began.
    case whole
    /// The newest page, or the first stored page fetched again, joined to the base.
    ///
    /// It may lack a change on another page.
    case newestOrFirstPage
    /// A page that follows or precedes the stored ones.
    case adjacentPage
  }

  /// A reply, and when its request began.
  struct Reply {
    /// Returns the value that replaces the base, or `nil` if the reply doesn't fit the base.
    ///
    /// `fetched` is the base as it was fetched, or `nil` if no mutation has changed it since. `visible` is the value
    /// that observers see, if it matters.
    typealias Merge = (_ base: Value?, _ fetched: Value?, _ visible: Value?) -> Value?

    enum Content {
      /// The value of a fetch, which `number` identifies.
      case fetched(number: Int, Extent, merge: Merge)
      /// The server refused to return the whole value to a fetch, which `number` identifies.
      case refused(number: Int)
      /// The reply to a mutation.
      ///
      /// It isn't trusted if it may repeat the reply to an earlier attempt.
      case mutation(MutationID, MutationReply<Value>, isTrusted: Bool)
    }

    let content: Content
    let requestedAt: Timestamp
  }

  /// The contents of the next commit.
  struct Write {
    /// The new base; `nil` if it doesn't change.
    fileprivate(set) var value: Value?
    /// The new base as it was fetched; `nil` if no mutation has changed it since.
    fileprivate(set) var fetched: Value?
    /// The tag of the base that the replies were judged against; `nil` if nothing was stored.
    let baseTag: StoreTag?
    /// The mutations that end with the commit, because the new base includes them or no value will ever show them.
    fileprivate(set) var confirmed: [MutationID] = []
    /// The numbers of the fetches whose value is part of the new base, or whose refusal was handled.
    fileprivate(set) var accepted: [Int] = []
    /// The numbers of the fetches whose reply may be older than the base, or doesn't fit it.
    fileprivate(set) var rejected: [Int] = []
    /// Whether the new base is a value that the server sent, or includes a newest or first page that it sent.
    fileprivate(set) var isRefreshed = false
    /// Whether the visible value certainly stays the same: the new base with the remaining mutations equals the old
    /// base with all mutations.
    fileprivate(set) var keepsVisible = true

    /// Whether there is nothing to commit.
    var isEmpty: Bool { value == nil && confirmed.isEmpty }
  }
}
