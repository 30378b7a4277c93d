internal import Foundation

/// What is queued, what may be sent next, and what has to wait for what: the decisions of a ``MutationQueue``, without
/// a store, a network, or a clock.
///
/// Each ordering key has a lane. The first mutation of a lane is the only one that may be sent, one at a time. Lanes
/// that may send stand in line for a free place, in the order they became ready.
///
/// Times are measured from the creation of the queue.
struct MutationQueueState<Mutation: Sendable>: Sendable {
  typealias Entry = MutationEntry<Mutation>

  let maximumConcurrentSends: Int
  private(set) var isLoaded = false
  private(set) var isPaused = false
  // What is not private is for `MutationQueueState+Changing.swift`, and for nobody else.
  private var sendingCount = 0
  var waitingCount = 0
  var deadCount = 0
  var lastSequence: UInt64 = 0
  private var lastBackOff: UInt64 = 0
  var sequences: [MutationID: UInt64] = [:]
  /// What is durable.
  var list = EntryList<Entry>()
  /// What is being written for the first time: it has its place in its lane, and blocks it.
  var beingStored: [UInt64: Entry] = [:]
  /// What a call is changing in the store: not to be sent meanwhile.
  var locked: Set<UInt64> = []
  /// What the server has answered for good, though the store could not take it: it must be sent again, not cancelled.
  var answered: Set<UInt64> = []
  private var lanes: [String: MutationLane] = [:]
  /// May name lanes that are no longer ready.
  private var ready = FIFO<String>()
  /// May hold waits that are over.
  private var deadlines = DeadlineHeap<MutationLane.BackOff>()

  init(maximumConcurrentSends: Int) {
    self.maximumConcurrentSends = maximumConcurrentSends
  }

  var snapshot: MutationQueueSnapshot<Mutation> {
    MutationQueueSnapshot(
      list: list, isLoaded: isLoaded, isPaused: isPaused, waitingCount: waitingCount, deadCount: deadCount)
  }

  func entry(_ id: MutationID) -> Entry? {
    sequences[id].flatMap { list[$0] }
  }

  /// The place of a mutation in the order of the queue.
  func sequence(_ id: MutationID) -> UInt64? {
    sequences[id]
  }

  /// Somebody has a ticket of a mutation from now on.
  ///
  /// - Returns: Whether the mutation has to wait for a later attempt, its own or one before it. Where it need not now,
  ///   it is among those that a later change names, once it must.
  mutating func giveTicket(_ id: MutationID) -> Bool {
    guard let entry = entry(id), !entry.isDead else { return false }
    if entry.state != .sending {
      if isPaused { return true }
      if case .backingOff = lanes[entry.orderingKey]?.status { return true }
      if lanes[entry.orderingKey]?.isHeldUp == true { return true }
    }
    lanes[entry.orderingKey]?.untold.insert(id)
    return false
  }

  // MARK: - Coming

  /// Takes in what earlier processes left, in the order of its numbers.
  mutating func load(_ stored: [(sequence: UInt64, entry: Entry)]) {
    isLoaded = true
    for (storedSequence, entry) in stored where sequences[entry.id] == nil {
      // Numbers are unique, unless somebody copied what is stored.
      let sequence = list[storedSequence] == nil ? storedSequence : lastSequence + 1
      lastSequence = max(lastSequence, sequence)
      sequences[entry.id] = sequence
      list.insert(entry, number: sequence)
      if entry.isDead {
        deadCount += 1
      } else {
        waitingCount += 1
        append(sequence, to: entry.orderingKey)
      }
    }
  }

  // MARK: - Sending

  enum Step {
    case send(Entry)
    /// Nothing can be sent before this time, or before something else happens.
    case wait(until: Duration?)
  }

  /// What to do now.
  mutating func next(at now: Duration) -> Step {
    while let first = deadlines.first, first.deadline <= now {
      _ = deadlines.removeFirst()
      endBackOff(first.element)
    }
    if isPaused || sendingCount >= maximumConcurrentSends { return .wait(until: nil) }
    while let orderingKey = ready.removeFirst() {
      guard var lane = lanes[orderingKey], case .ready = lane.status else { continue }
      guard let sequence = lane.waiting.first, isSendable(sequence), var entry = list[sequence] else {
        // Its first mutation was locked or taken away while the lane stood in line.
        lanes[orderingKey]?.status = .idle
        makeReady(orderingKey)
        continue
      }
      lanes[orderingKey] = nil
      _ = lane.waiting.removeFirst()
      lane.status = .sending
      lane.untold.insert(entry.id)
      lanes[orderingKey] = lane
      sendingCount += 1
      entry.state = .sending
      entry.attempts += 1
      list[sequence] = entry
      return .send(entry)
    }
    return .wait(until: deadlines.first?.deadline)
  }

  /// A mutation is delivered, and gone from the store.
  mutating func finishSending(_ id: MutationID) {
    guard let sequence = sequences.removeValue(forKey: id), let entry = list.remove(sequence) else { return }
    answered.remove(sequence)
    waitingCount -= 1
    endSending(entry.orderingKey, id: id)
  }

  /// A mutation was refused, and is a dead letter in the store.
  mutating func refuse(_ id: MutationID, reason: String, since: Date) {
    guard let sequence = sequences[id], var entry = list[sequence] else { return }
    entry.state = .dead(reason: reason, since: since)
    entry.lastFailure = reason
    list[sequence] = entry
    answered.remove(sequence)
    waitingCount -= 1
    deadCount += 1
    endSending(entry.orderingKey, id: id)
  }

  /// How many attempts of the mutation's lane have failed since the last success or kick, this one included.
  func failures(with id: MutationID) -> Int {
    (entry(id).flatMap { lanes[$0.orderingKey] }?.failures ?? 0) + 1
  }

  /// An attempt failed: the lane waits.
  ///
  /// - Returns: The mutations whose callers are now to be told that they have to wait.
  mutating func backOff(_ id: MutationID, until deadline: Duration, nextTry: Date, reason: String) -> [MutationID] {
    guard let sequence = sequences[id], var entry = list[sequence] else { return [] }
    entry.state = .waiting(nextTry: nextTry)
    entry.lastFailure = reason
    list[sequence] = entry
    guard var lane = lanes.removeValue(forKey: entry.orderingKey) else { return [] }
    lastBackOff += 1
    lane.waiting.prepend(sequence)
    lane.status = .backingOff(number: lastBackOff)
    lane.failures += 1
    let told = inOrder(lane.untold)
    lane.untold = []
    lanes[entry.orderingKey] = lane
    let backOff = MutationLane.BackOff(orderingKey: entry.orderingKey, number: lastBackOff)
    deadlines.insert(backOff, deadline: deadline)
    sendingCount -= 1
    return told
  }

  /// The end of a mutation could not be written down: its lane waits until it can.
  ///
  /// The mutation's own callers know the end.
  ///
  /// - Returns: The mutations whose callers are now to be told that they have to wait.
  mutating func holdUp(_ id: MutationID) -> [MutationID] {
    guard let sequence = sequences[id], let orderingKey = list[sequence]?.orderingKey,
      var lane = lanes.removeValue(forKey: orderingKey)
    else { return [] }
    answered.insert(sequence)
    lane.isHeldUp = true
    lane.untold.remove(id)
    let told = inOrder(lane.untold)
    lane.untold = []
    lanes[orderingKey] = lane
    return told
  }

  /// An attempt was broken off without a result: the mutation is first in its lane again.
  ///
  /// - Returns: The mutations whose callers are now to be told that they have to wait: while paused, the mutation
  ///   itself, which was under way when the others were told.
  mutating func release(_ id: MutationID) -> [MutationID] {
    guard let sequence = sequences[id], var entry = list[sequence] else { return [] }
    entry.state = .waiting(nextTry: nil)
    list[sequence] = entry
    lanes[entry.orderingKey]?.waiting.prepend(sequence)
    lanes[entry.orderingKey]?.status = .idle
    lanes[entry.orderingKey]?.isHeldUp = false
    sendingCount -= 1
    makeReady(entry.orderingKey)
    guard isPaused, lanes[entry.orderingKey]?.untold.remove(id) != nil else { return [] }
    return [id]
  }

  // MARK: - Holding and kicking

  /// Nothing more is sent.
  ///
  /// - Returns: The mutations whose callers are now to be told that they have to wait.
  mutating func pause() -> [MutationID] {
    if isPaused { return [] }
    isPaused = true
    var told: Set<MutationID> = []
    for orderingKey in lanes.keys {
      // One that is being sent is under way also now.
      let waiting = lanes[orderingKey]?.untold.filter { entry($0)?.state != .sending } ?? []
      lanes[orderingKey]?.untold.subtract(waiting)
      told.formUnion(waiting)
    }
    return inOrder(told)
  }

  mutating func resume() {
    isPaused = false
  }

  /// All waits are over, and the backoff begins anew.
  mutating func kick() {
    let items = deadlines.items
    deadlines.removeAll()
    for item in items { endBackOff(item.element) }
    for orderingKey in lanes.keys { lanes[orderingKey]?.failures = 0 }
  }
}

extension MutationQueueState {
  private func inOrder(_ ids: Set<MutationID>) -> [MutationID] {
    ids.sorted { sequences[$0, default: 0] < sequences[$1, default: 0] }
  }

  private func isSendable(_ sequence: UInt64) -> Bool {
    beingStored[sequence] == nil && !locked.contains(sequence)
  }

  mutating func append(_ sequence: UInt64, to orderingKey: String) {
    lanes[orderingKey, default: MutationLane()].waiting.append(sequence)
    makeReady(orderingKey)
  }

  mutating func removeFromLane(_ sequence: UInt64, _ entry: Entry) {
    let wasFirst = lanes[entry.orderingKey]?.waiting.first == sequence
    lanes[entry.orderingKey]?.waiting.removeAll { $0 == sequence }
    lanes[entry.orderingKey]?.untold.remove(entry.id)
    if wasFirst, case .backingOff = lanes[entry.orderingKey]?.status {
      // It was the one that waited for its next attempt; the next in line has not been tried.
      lanes[entry.orderingKey]?.status = .idle
    }
    makeReady(entry.orderingKey)
  }

  private mutating func endSending(_ orderingKey: String, id: MutationID) {
    sendingCount -= 1
    lanes[orderingKey]?.status = .idle
    lanes[orderingKey]?.isHeldUp = false
    lanes[orderingKey]?.failures = 0
    lanes[orderingKey]?.untold.remove(id)
    makeReady(orderingKey)
  }

  private mutating func endBackOff(_ backOff: MutationLane.BackOff) {
    guard case .backingOff(let number) = lanes[backOff.orderingKey]?.status, number == backOff.number else { return }
    lanes[backOff.orderingKey]?.status = .idle
    if let sequence = lanes[backOff.orderingKey]?.waiting.first, var entry = list[sequence] {
      entry.state = .waiting(nextTry: nil)
      list[sequence] = entry
    }
    makeReady(backOff.orderingKey)
  }

  /// Puts an idle lane in line if its first mutation may be sent, and forgets it if there is none.
  mutating func makeReady(_ orderingKey: String) {
    guard let lane = lanes[orderingKey], case .idle = lane.status else { return }
    guard let first = lane.waiting.first else {
      lanes[orderingKey] = nil
      return
    }
    if isSendable(first) {
      lanes[orderingKey]?.status = .ready
      ready.append(orderingKey)
    }
  }
}
