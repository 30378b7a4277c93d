internal import DataStore

/// What the replies that have arrived make of a value's base, one after the other.
///
/// Part of ``SyncState``, which gives it the state of things and takes it back. Each reply is judged against what those
/// before it have made of the base:
/// - A fetched value is accepted if it is certainly newer; see ``VersionBarriers``. Then it has each mutation that was
///   confirmed before its request, and perhaps others, which show in it.
/// - Where the server refuses to give the whole value, the mutations that were confirmed before the request are taken into
///   the base as they are shown.
/// - The reply to a mutation is accepted if the base certainly doesn't have the mutation yet. Otherwise the mutation is
///   confirmed, and stays over the base until a whole value has it.
///
/// - Complexity: O(*k* log *k*) for each reply, where *k* is the number of mutations that are confirmed or whose outcome is
///   unknown, plus the application of the mutation. A whole value costs one application of each whose outcome is unknown.
struct ReplyJudgement<Value: Equatable & Sendable, Mutation: RepositoryMutation<Value>> {
  typealias State = SyncState<Value, Mutation>
  typealias Timestamp = VersionBarriers.Timestamp
  typealias Item = PendingMutationList<Mutation>.Item

  private(set) var pending: PendingMutationList<Mutation>
  private(set) var versions: VersionBarriers
  private var base: Value?
  /// The base as it was fetched; `nil` if nothing has changed it since.
  private var fetched: Value?
  private var isChanged = false
  private var judged: State.Write
  private var confirmed: Set<MutationID> = []
  /// The pending mutations behind those that were confirmed one after the other.
  private let order: AnyIterator<Item>
  private let empty: Value?
  private let isPaged: Bool
  private let isComplete: (Value) -> Bool

  /// - Parameters:
  ///   - base: The base; `nil` if nothing is stored.
  ///   - fetched: The base as it was fetched; `nil` if nothing has changed it since.
  ///   - tag: The tag of the base.
  ///   - pending: The mutations over the base.
  ///   - versions: When the base changed.
  ///   - empty: What mutations are applied to where nothing is stored.
  ///   - isPaged: Whether values are joined from pages.
  ///   - isComplete: Whether a value is all that the server has, so that what isn't in it isn't anywhere.
  init(
    base: Value?, fetched: Value?, tag: StoreTag?, pending: PendingMutationList<Mutation>, versions: VersionBarriers,
    empty: Value?, isPaged: Bool, isComplete: @escaping (Value) -> Bool
  ) {
    (self.base, self.fetched, self.pending, self.versions) = (base, fetched, pending, versions)
    (self.empty, self.isPaged, self.isComplete) = (empty, isPaged, isComplete)
    judged = State.Write(baseTag: tag)
    order = AnyIterator(pending.all.makeIterator())
  }

  /// What to commit for the replies that were judged.
  var write: State.Write {
    var write = judged
    if isChanged { (write.value, write.fetched) = (base, fetched) }
    return write
  }

  /// Judges the next reply.
  mutating func judge(_ reply: State.Reply, arrivedAt: Timestamp) {
    switch reply.content {
    case .fetched(let number, let extent, let merge):
      let before = versions
      guard versions.acceptValue(requestedAt: reply.requestedAt, arrivedAt: arrivedAt),
        let merged = merge(base, fetched)
      else {
        versions = before
        judged.rejected.append(number)
        return
      }
      judged.accepted.append(number)
      // What was changed on this device meanwhile may still be a part of it.
      if let earlier = fetched {
        let joined = merge(earlier, nil) ?? earlier
        fetched = joined == merged ? nil : joined
      }
      replaceBase(with: merged)
      if extent != .next { judged.isRefreshed = true }
      if extent == .whole { confirmAll(requestedBefore: reply.requestedAt) }
    case .refused(let number):
      guard versions.acceptChange(requestedAt: reply.requestedAt, arrivedAt: arrivedAt) else {
        judged.rejected.append(number)
        return
      }
      judged.accepted.append(number)
      confirmWithoutValue(requestedBefore: reply.requestedAt)
    case .mutation(let id, let content, let isTrusted):
      guard let item = pending[id], !confirmed.contains(id) else { return }
      if isTrusted, accept(content, of: item, requestedAt: reply.requestedAt, arrivedAt: arrivedAt) {
        confirm(id)
      } else {
        pending.setPhase(.confirmed(at: arrivedAt), of: id)
      }
    }
  }

  /// Takes the reply of a mutation into the base, unless the base may have the mutation already.
  private mutating func accept(
    _ reply: MutationReply<Value>, of item: Item, requestedAt: Timestamp, arrivedAt: Timestamp
  ) -> Bool {
    switch reply {
    case .value(let value):
      guard versions.acceptValue(requestedAt: requestedAt, arrivedAt: arrivedAt) else { return false }
      // What is visible stays if the server did what was expected of it, which is the rule in a long queue.
      if judged.keepsVisible { judged.keepsVisible = order.next()?.id == item.id && value == applied(item.mutation) }
      (base, fetched, isChanged) = (value, nil, true)
      judged.isRefreshed = true
      confirmAll(requestedBefore: requestedAt)
      return true
    case .patch(let patch):
      guard var value = base, !isBehindConfirmed(item),
        versions.acceptChange(requestedAt: requestedAt, arrivedAt: arrivedAt)
      else { return false }
      keepFetched()
      base = nil
      patch(&value)
      replaceBase(with: value)
      return true
    case .done:
      if isBehindConfirmed(item) { return false }
      // Where nothing is stored and nothing was shown, nothing is stored. What was shown stays until it is fetched.
      guard base != nil else {
        return empty == nil && versions.acceptChange(requestedAt: requestedAt, arrivedAt: arrivedAt)
      }
      let before = versions
      guard versions.acceptChange(requestedAt: requestedAt, arrivedAt: arrivedAt) else { return false }
      guard let value = applied(item.mutation) else {
        versions = before
        return false
      }
      keepFetched()
      (base, isChanged) = (value, true)
      // What is visible stays if the mutation was the first of those that remain.
      if judged.keepsVisible, order.next()?.id != item.id { judged.keepsVisible = false }
      return true
    }
  }

  /// Whether the base lacks a mutation that was made before one and is at the server.
  ///
  /// A base with the later one but without the earlier one would show them in the wrong order.
  private func isBehindConfirmed(_ item: Item) -> Bool {
    guard pending.confirmedCount > 0 else { return false }
    return pending.uncertain.contains { earlier in
      guard case .confirmed = earlier.phase else { return false }
      return earlier.place < item.place && !confirmed.contains(earlier.id)
    }
  }

  private mutating func replaceBase(with value: Value) {
    (base, isChanged) = (value, true)
    judged.keepsVisible = false
  }

  /// Keeps the base as it was fetched, before the first change since: pages are joined to that.
  private mutating func keepFetched() {
    if isPaged, fetched == nil { fetched = base }
  }

  private mutating func confirm(_ id: MutationID) {
    confirmed.insert(id)
    judged.confirmed.append(id)
  }

  /// Confirms all mutations that a whole value certainly has, or shows.
  private mutating func confirmAll(requestedBefore requestedAt: Timestamp) {
    for item in pending.uncertain where !confirmed.contains(item.id) {
      let isIncluded =
        switch item.phase {
        case .confirmed(let moment): moment < requestedAt
        case .waiting(let unknownSince?): unknownSince < requestedAt && baseShows(item.mutation)
        case .waiting(nil), .inFlight: false
        }
      guard isIncluded else { continue }
      confirm(item.id)
      judged.keepsVisible = false
    }
  }

  /// Confirms all mutations that the server is known to have, because no value can ever show them.
  ///
  /// The base becomes what observers see of them.
  private mutating func confirmWithoutValue(requestedBefore requestedAt: Timestamp) {
    for item in pending.uncertain where !confirmed.contains(item.id) {
      guard case .confirmed(let moment) = item.phase, moment < requestedAt else { continue }
      confirm(item.id)
      judged.keepsVisible = false
      guard let value = applied(item.mutation) else { continue }
      keepFetched()
      (base, isChanged) = (value, true)
    }
  }

  /// The base as the server makes it if nothing else changes it; `nil` if the mutation isn't possible on it.
  private func applied(_ mutation: Mutation) -> Value? {
    base.flatMap { mutation.applied(to: $0) }
  }

  private func baseShows(_ mutation: Mutation) -> Bool {
    guard let base, isComplete(base) else { return false }
    return mutation.hasNoEffect(on: base)
  }
}

extension RepositoryMutation {
  /// Returns a value with the mutation; `nil` if it isn't possible on it.
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
  /// Whether a value has the mutation already, so that applying it changes nothing.
  func hasNoEffect(on value: Value) -> Bool { applied(to: value) == value }
}

extension SyncState {
  /// What a fetch brings.
  enum Extent {
    /// A value that replaces the base. It has every change that was confirmed before its request.
    case whole
    /// What is newest, joined to the base, which may lack a change elsewhere.
    case newest
    /// What follows the base.
    case next
  }

  /// A reply, and when it was asked for.
  struct Reply {
    /// Returns what to store over the base, or `nil` if the reply doesn't fit it.
    ///
    /// `fetched` is the base as it was fetched, or `nil` if nothing has changed it since.
    typealias Merge = (_ base: Value?, _ fetched: Value?) -> Value?

    enum Content {
      /// What a fetch brought.
      case fetched(number: Int, Extent, merge: Merge)
      /// The server refused to give the whole value.
      case refused(number: Int)
      /// What the server answered to a mutation. It isn't trusted if it may repeat the reply to an earlier attempt.
      case mutation(MutationID, MutationReply<Value>, isTrusted: Bool)
    }

    let content: Content
    let requestedAt: Timestamp
  }

  /// What to commit next, as one.
  struct Write {
    /// The new base; `nil` if it stays.
    fileprivate(set) var value: Value?
    /// The new base as it was fetched; `nil` if nothing has changed it since.
    fileprivate(set) var fetched: Value?
    /// The tag of the base that the replies were judged against; `nil` if nothing was stored.
    let baseTag: StoreTag?
    /// The mutations that the new base has.
    fileprivate(set) var confirmed: [MutationID] = []
    /// The fetches whose value is in the new base, or that were refused and are done with.
    fileprivate(set) var accepted: [Int] = []
    /// The fetches whose value may be older than the base.
    fileprivate(set) var rejected: [Int] = []
    /// Whether the new base has what is newest on the server.
    fileprivate(set) var isRefreshed = false
    /// Whether the new base with the remaining mutations is what the old one was with all.
    fileprivate(set) var keepsVisible = true

    /// Whether there is nothing to commit.
    var isEmpty: Bool { value == nil && confirmed.isEmpty }
  }
}
