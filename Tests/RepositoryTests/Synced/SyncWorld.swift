import DataStore

@testable import Repository

/// A value that records which changes it includes, and how often each was applied.
struct Tally: Codable, Equatable, Sendable {
  var counts: [Int: Int] = [:]

  init(_ changes: [Int] = []) {
    for change in changes { counts[change] = 1 }
  }

  func has(_ change: Int) -> Bool { counts[change] != nil }
}

/// A mutation that reveals whether it was applied twice.
struct TallyMutation: RepositoryMutation, Equatable {
  let change: Int
  /// The mutation is impossible on a value that includes this change; `nil` if it is always possible.
  var excluded: Int?
  /// Whether the mutation has no effect on a value that has the change.
  var isRepeatable = false

  func apply(to value: inout Tally) throws(MutationConflict) {
    if let excluded, value.has(excluded) {
      // Changes a part of the value before the throw. If a caller kept that part, the count of -1 would break a law.
      value.counts[change] = -1
      throw MutationConflict("\(excluded)")
    }
    if isRepeatable { value.counts[change] = 1 } else { value.counts[change, default: 0] += 1 }
  }
}

/// A ``SyncState`` and a simulation of its environment: a server with another client, requests in transit, a store, and
/// another process.
///
/// ``possibleEvents`` has the events that can occur next. The *laws* must hold after every event, and ``violation``
/// describes a broken one.
struct SyncWorld {
  enum Event: Hashable, CaseIterable, Sendable {
    case perform
    /// Performs a mutation that is impossible on a value with the ``excludingChange``.
    case performExcludable
    case send, serveAttempt, replyWithValue, replyDone, replyWithPatch, loseReply, failBeforeServer, refuse
    case cancel
    case fetch, serveFetch, replyToFetch
    case otherEdit
    /// Another client makes the ``excludingChange`` on the server.
    case otherEditThatExcludes
    /// Another client makes the change of a pending mutation, which then has no effect on the server's value.
    case otherEditThatMatches
    case externalSave, externalRemoval
    case beginWrite, commit, failWrite
    case relaunch
  }

  /// The change that makes a mutation of ``Event/performExcludable`` impossible.
  ///
  /// All other changes are numbered from 1.
  private static let excludingChange = 0

  /// A mutation that the user made, and its expected state.
  private struct Intent {
    let id: MutationID
    let mutation: TallyMutation
    /// Whether the mutation must be pending, because no commit has confirmed it yet and it isn't rolled back.
    var isLive = true
    /// Whether it has been visible.
    ///
    /// It must then stay visible while it is live, unless another change can make it impossible.
    var hasBeenVisible = false
    var isOutcomeUnknown = false
  }

  /// An attempt to send a mutation.
  ///
  /// The reply isn't trusted if it may repeat the reply to an earlier attempt.
  private enum Attempt {
    case inTransit(SyncState<Tally, TallyMutation>.Timestamp, isTrusted: Bool)
    case served(SyncState<Tally, TallyMutation>.Timestamp, isTrusted: Bool, reply: Tally)
  }

  private enum Fetch {
    case inTransit(SyncState<Tally, TallyMutation>.Timestamp)
    case served(SyncState<Tally, TallyMutation>.Timestamp, Tally)
  }

  private(set) var state: SyncState<Tally, TallyMutation>
  private(set) var server = Tally()
  private(set) var violation: String?

  private var intents: [Intent] = []
  /// The server's reply for each id that it has received.
  private var replies: [MutationID: Tally] = [:]
  /// The attempt in progress, if any; never more than one.
  private var attempts: [(id: MutationID, attempt: Attempt)] = []
  private var fetches: [Fetch] = []
  private var lastChange = 0
  private var lastFetch = 0
  /// The stored value.
  private var stored: SyncState<Tally, TallyMutation>.Base?
  private var revision: UInt64 = 0
  private var write: SyncState<Tally, TallyMutation>.Write?
  /// All changes that the base has included since the last external removal, or, without one, since the beginning.
  private var changesSeenInBase: Set<Int> = []
  /// The value that mutations are applied to if nothing is stored.
  private let empty: Tally?
  private let areMutationsRepeatable: Bool
  /// Whether observers see `empty`, with the pending mutations, if any, applied.
  private var showsEmpty = false
  private var visibleBefore: Tally?
  private var versionBefore: UInt64 = 0

  /// Creates a world that stores an empty tally if `empty` is `nil`, and nothing otherwise.
  ///
  /// - Parameters:
  ///   - empty: The value that mutations are applied to if nothing is stored; `nil` if mutations then have no effect.
  ///   - areMutationsRepeatable: Whether a mutation has no effect on a value that has its change.
  init(empty: Tally? = nil, areMutationsRepeatable: Bool = false) {
    (self.empty, self.areMutationsRepeatable) = (empty, areMutationsRepeatable)
    state = SyncState(empty: empty)
    state.open(nil)
    if empty == nil {
      store(Tally())
      state.receiveExternal(stored, revision: revision)
    }
    _ = state.fold()
    (visibleBefore, versionBefore) = (state.visible, state.visibleVersion)
  }

  private mutating func store(_ value: Tally?) {
    revision += 1
    stored = value.map { .init(value: $0, tag: StoreTag(), revision: revision) }
  }

  // MARK: - Events

  /// The events that can occur now, in a fixed order.
  var possibleEvents: [Event] { Event.allCases.filter(isPossible) }

  private func isPossible(_ event: Event) -> Bool {
    // The limits keep the world small.
    switch event {
    case .perform: intents.count < 6
    case .performExcludable: intents.count < 6
    case .send: indexOfNextToSend != nil
    case .serveAttempt: attempts.contains { if case .inTransit = $0.attempt { true } else { false } }
    case .replyWithValue, .replyDone, .replyWithPatch, .loseReply:
      attempts.contains { if case .served = $0.attempt { true } else { false } }
    case .failBeforeServer, .refuse: attempts.contains { if case .inTransit = $0.attempt { true } else { false } }
    case .cancel: intents.contains { $0.isLive && isWaiting($0.id) && !$0.isOutcomeUnknown }
    case .fetch: fetches.count < 3
    case .serveFetch: fetches.contains { if case .inTransit = $0 { true } else { false } }
    case .replyToFetch: fetches.contains { if case .served = $0 { true } else { false } }
    case .otherEdit: lastChange < 12
    case .otherEditThatExcludes: lastChange < 12 && !server.has(Self.excludingChange)
    case .otherEditThatMatches: areMutationsRepeatable && intents.contains(where: isUnmatched)
    case .externalSave: stored?.value != server
    case .externalRemoval: stored != nil
    case .beginWrite: write == nil
    case .commit, .failWrite: write != nil
    case .relaunch: write == nil
    }
  }

  private func isUnmatched(_ intent: Intent) -> Bool { intent.isLive && !server.has(intent.mutation.change) }

  private var indexOfNextToSend: Int? {
    guard attempts.isEmpty else { return nil }
    return intents.firstIndex { $0.isLive && isWaiting($0.id) }
  }

  /// Whether a mutation waits to be sent, for the first time or again.
  private func isWaiting(_ id: MutationID) -> Bool {
    state.contains(id) && !state.idsThatNeedWholeValue.contains(id) && !attempts.contains { $0.id == id }
      && !answered.contains(id)
  }

  /// The mutations whose reply has arrived, until a commit confirms them or they need a whole value.
  private var answered: Set<MutationID> = []

  mutating func process(_ event: Event) {
    switch event {
    case .perform: perform(excluding: nil)
    case .performExcludable: perform(excluding: Self.excludingChange)
    case .send: send()
    case .serveAttempt: serveAttempt()
    case .replyWithValue: reply { .value($0) }
    case .replyDone: reply { _ in .done }
    case .replyWithPatch: reply { _ in nil }
    case .loseReply: loseReply()
    case .failBeforeServer: endAttempt { $0.state.fail($1) }
    case .refuse: refuse()
    case .cancel: cancel()
    case .fetch: fetches.append(.inTransit(state.beginFetching()))
    case .serveFetch: serveFetch()
    case .replyToFetch: replyToFetch()
    case .otherEdit: edit(takeNextChangeNumber())
    case .otherEditThatExcludes: edit(Self.excludingChange)
    case .otherEditThatMatches: intents.first(where: isUnmatched).map { edit($0.mutation.change) }
    case .externalSave: changeExternally(to: server)
    case .externalRemoval: changeExternally(to: nil)
    case .beginWrite: beginWrite()
    case .commit: commit()
    case .failWrite: failWrite()
    case .relaunch: relaunch()
    }
    for conflict in state.fold() { markEnded(conflict.id) }
    check()
  }

  private mutating func takeNextChangeNumber() -> Int {
    lastChange += 1
    return lastChange
  }

  private mutating func perform(excluding excluded: Int?) {
    let mutation = TallyMutation(
      change: takeNextChangeNumber(), excluded: excluded, isRepeatable: areMutationsRepeatable)
    let intent = Intent(id: MutationID(), mutation: mutation)
    do throws(MutationConflict) {
      try state.add(intent.id, intent.mutation)
      intents.append(intent)
    } catch {
      if state.visible?.has(Self.excludingChange) != true { violation = "A possible mutation threw a conflict." }
    }
  }

  private mutating func send() {
    guard let index = indexOfNextToSend else { return }
    let intent = intents[index]
    attempts.append(
      (intent.id, .inTransit(state.beginSending(intent.id), isTrusted: !intent.isOutcomeUnknown)))
  }

  private mutating func serveAttempt() {
    guard case .inTransit(let time, let isTrusted) = attempts[0].attempt,
      let intent = intents.first(where: { $0.id == attempts[0].id })
    else { return }
    if replies[intent.id] == nil {
      server.counts[intent.mutation.change] = 1
      replies[intent.id] = server
    }
    attempts[0].attempt = .served(time, isTrusted: isTrusted, reply: replies[intent.id]!)
  }

  /// Delivers the reply that `makeReply` makes of the server's value; `nil` stands for a patch with the change.
  private mutating func reply(_ makeReply: (Tally) -> MutationReply<Tally>?) {
    guard case .served(let time, let isTrusted, let value) = attempts[0].attempt,
      let intent = intents.first(where: { $0.id == attempts[0].id })
    else { return }
    let change = intent.mutation.change
    // Unless mutations are repeatable, a patch that is applied twice, or to a value with the change, is noticed.
    let reply =
      makeReply(value)
      ?? .patch { [areMutationsRepeatable] in
        if areMutationsRepeatable { $0.counts[change] = 1 } else { $0.counts[change, default: 0] += 1 }
      }
    state.receive(.mutation(intent.id, reply, isTrusted: isTrusted), requestedAt: time)
    answered.insert(intent.id)
    attempts.removeFirst()
  }

  private mutating func loseReply() {
    endAttempt { world, id in
      world.state.fail(id)
      if let index = world.intents.firstIndex(where: { $0.id == id }) { world.intents[index].isOutcomeUnknown = true }
    }
  }

  private mutating func endAttempt(_ body: (inout SyncWorld, MutationID) -> Void) {
    let id = attempts.removeFirst().id
    body(&self, id)
  }

  private mutating func refuse() {
    endAttempt { world, id in
      // A server that has applied a mutation never refuses it, so the attempt only fails.
      if world.replies[id] != nil { return world.state.fail(id) }
      world.state.remove(id)
      world.markEnded(id)
    }
  }

  private mutating func cancel() {
    guard let intent = intents.first(where: { $0.isLive && isWaiting($0.id) && !$0.isOutcomeUnknown }) else { return }
    state.remove(intent.id)
    markEnded(intent.id)
  }

  private mutating func markEnded(_ id: MutationID) {
    if let index = intents.firstIndex(where: { $0.id == id }) { intents[index].isLive = false }
  }

  private mutating func serveFetch() {
    for (index, fetch) in fetches.enumerated() {
      guard case .inTransit(let time) = fetch else { continue }
      fetches[index] = .served(time, server)
      return
    }
  }

  private mutating func replyToFetch() {
    for (index, fetch) in fetches.enumerated() {
      guard case .served(let time, let value) = fetch else { continue }
      fetches.remove(at: index)
      lastFetch += 1
      state.receive(.fetched(number: lastFetch, .whole) { _, _, _ in value }, requestedAt: time)
      return
    }
  }

  private mutating func edit(_ change: Int) {
    server.counts[change] = 1
  }

  private mutating func changeExternally(to value: Tally?) {
    store(value)
    state.receiveExternal(stored, revision: revision)
    if value == nil { (changesSeenInBase, showsEmpty) = ([], false) }
  }

  private mutating func beginWrite() {
    write = state.beginWriting()
    answered = answered.filter { id in !state.idsThatNeedWholeValue.contains(id) }
  }

  private mutating func commit() {
    guard let write else { return }
    self.write = nil
    if !write.isEmpty, write.baseTag != stored?.tag {
      // The precondition of the commit fails, because another process has changed the stored value.
      return state.abandon(keepsFetches: true)
    }
    if let value = write.value { store(value) }
    state.commit(revision: revision, tag: stored?.tag ?? StoreTag())
    for id in write.confirmed {
      answered.remove(id)
      markEnded(id)
      let change = intents.first { $0.id == id }!.mutation.change
      if let base = state.base, !base.value.has(change) {
        violation = "Change \(change) was confirmed, but the base lacks it."
      }
      if replies[id] == nil { violation = "Change \(change) was confirmed, but its request never arrived." }
    }
  }

  private mutating func failWrite() {
    write = nil
    state.abandon(keepsFetches: false)
  }

  /// Simulates that the process ends and another one opens the store.
  private mutating func relaunch() {
    for (id, _) in attempts { markUnknown(id) }
    for id in answered { markUnknown(id) }
    for id in state.idsThatNeedWholeValue { markUnknown(id) }
    (attempts, fetches, answered) = ([], [], [])
    state = SyncState(empty: empty)
    state.open(stored)
    (showsEmpty, visibleBefore, versionBefore) = (false, nil, 0)
    for intent in intents where intent.isLive {
      state.restore(intent.id, intent.mutation)
    }
  }

  private mutating func markUnknown(_ id: MutationID) {
    if let index = intents.firstIndex(where: { $0.id == id }) { intents[index].isOutcomeUnknown = true }
  }

  // MARK: - Laws

  private mutating func check() {
    guard violation == nil else { return }
    let live = intents.filter(\.isLive)
    // Observers see the base with all pending mutations. Without a base, they see nothing until a mutation is pending,
    // then `empty` with the pending mutations, and `empty` itself once none are left.
    if state.base != nil {
      showsEmpty = false
    } else if live.contains(where: { state.contains($0.id) }) {
      showsEmpty = empty != nil
    }
    var expected = state.base?.value ?? (showsEmpty ? empty : nil)
    for intent in live where state.contains(intent.id) {
      guard var value = expected else { break }
      do throws(MutationConflict) {
        try intent.mutation.apply(to: &value)
        expected = value
      } catch {
        // A mutation that is in flight, or whose reply has arrived, stays pending without effect if it isn't possible.
      }
    }
    if state.visible != expected {
      violation = "visible: \(String(describing: state.visible)), not \(String(describing: expected))"
    }
    if (state.visible != visibleBefore) != (state.visibleVersion > versionBefore) {
      violation = "The version doesn't say whether the visible value has changed."
    }
    (visibleBefore, versionBefore) = (state.visible, state.visibleVersion)
    // A mutation is pending until a commit confirms it or it is rolled back.
    for intent in live where !state.contains(intent.id) { violation = "Change \(intent.mutation.change) was lost." }
    if state.isPending != !live.isEmpty { violation = "isPending is \(state.isPending) with \(live.count) mutations." }
    // The visible effect of a live mutation doesn't disappear, unless another change can make the mutation impossible.
    for index in intents.indices {
      let intent = intents[index]
      guard let visible = state.visible else { continue }
      let isVisible = visible.has(intent.mutation.change)
      if intent.isLive, intent.hasBeenVisible, !isVisible, intent.mutation.excluded == nil {
        violation = "Change \(intent.mutation.change) is no longer visible."
      }
      if isVisible { intents[index].hasBeenVisible = true }
    }
    guard let base = state.base?.value else { return }
    // No older value follows a newer one, and no change is applied twice.
    if let lost = changesSeenInBase.first(where: { !base.has($0) }) {
      violation = "The base no longer includes change \(lost)."
    }
    changesSeenInBase.formUnion(base.counts.keys)
    if let miscounted = base.counts.first(where: { $0.value != 1 }) {
      violation = "The base has change \(miscounted.key) \(miscounted.value) times."
    }
  }

  /// Sends, delivers, writes and fetches until nothing is left to do, and checks that the server's value is visible.
  mutating func settle() {
    for _ in 0..<200 {
      guard violation == nil else { return }
      if write != nil {
        process(.commit)
      } else if state.hasReplies {
        process(.beginWrite)
      } else if isPossible(.replyWithValue) {
        process(.replyWithValue)
      } else if isPossible(.serveAttempt) {
        process(.serveAttempt)
      } else if isPossible(.send) {
        process(.send)
      } else if isPossible(.replyToFetch) {
        process(.replyToFetch)
      } else if isPossible(.serveFetch) {
        process(.serveFetch)
      } else if state.base?.value != server {
        process(.fetch)
      } else if state.needsWholeValue {
        process(.fetch)
      } else {
        if state.isPending || state.visible != server { violation = "The settled state differs from the server." }
        return
      }
    }
    violation = "The state never settles."
  }
}
