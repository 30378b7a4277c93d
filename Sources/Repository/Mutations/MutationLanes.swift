/// Decides which mutation is sent next, and which mutations wait.
///
/// Each ordering key of a user has a lane, a FIFO of mutations. Only the first mutation of a lane may be in flight, and
/// the next one waits until the first needs no further attempt. A lane needs one of a limited number of slots to send.
/// Ready lanes get free slots in the order in which they became ready. A send that exceeds a time limit releases its
/// slot, so it delays other lanes by that time at most.
///
/// A pure state machine. Times are measured from the creation of the repository.
///
/// - Complexity: O(1) amortized for each function unless stated otherwise, plus O(log *n*) for *n* lanes that back off
///   or are in flight. ``insert(_:lane:userID:before:)``, ``remove(_:lane:)`` and ``waiting(in:)`` are O(*m*) for the
///   *m* mutations of the lane. ``retryNow()`` is O(*n* log *n*) for the *n* lanes with failed attempts, and
///   ``signedIn(userID:)`` is O(*n* log *n*) for *n* lanes in all.
struct MutationLanes {
  enum Step: Equatable {
    case send(MutationID, lane: LaneID)
    /// Nothing is sent before the deadline or the next event.
    case wait(until: Duration?)
  }

  private enum Status: Equatable {
    /// The first mutation is blocked.
    case idle
    /// Waits for a free slot.
    case ready
    /// Has a slot unless the send has exceeded its time limit.
    ///
    /// `number` identifies the attempt. `signInCount` is the number of times that the user had signed in when the
    /// attempt began.
    case inFlight(number: UInt64, hasSlot: Bool, signInCount: UInt64)
    /// Waits for a deadline.
    ///
    /// `number` identifies the wait.
    case backingOff(number: UInt64, isServerDelay: Bool)
    case needsSignIn

    var isInFlight: Bool { if case .inFlight = self { true } else { false } }
  }

  private struct Lane {
    let userID: String?
    var status = Status.idle
    /// The waiting mutations in order, without the one in flight.
    var waiting = FIFO<MutationID>()
    /// The number of failed attempts since the last ``MutationLanes/complete(lane:)`` or ``MutationLanes/retryNow()``.
    var failures = 0
    /// Whether the outcome of the last failed attempt is unknown.
    var isOutcomeUnknown = false
    /// Whether a backoff was ended before its deadline since `failures` was 0.
    var wasResumedAfterFetch = false
  }

  /// A deadline of an attempt or of a backoff.
  ///
  /// It is void if the lane's status has a different number.
  private struct LaneDeadline {
    let lane: LaneID
    let number: UInt64
  }

  private let maximumInFlight: Int
  private let slotTimeout: Duration
  /// Whether sending is paused, because the network is offline.
  private(set) var isPaused = false
  /// The mutations that may not be sent yet.
  ///
  /// They keep their places in their lanes and block the mutations behind them.
  private var blocked: Set<MutationID> = []
  /// The number of lanes in flight that have a slot.
  private var usedSlotCount = 0
  /// The users who have to sign in again.
  private(set) var usersNeedingSignIn: Set<String?> = []
  /// The number of times that each user has signed in.
  private var signInCounts: [String?: UInt64] = [:]
  private var lanes: [LaneID: Lane] = [:]
  /// The lanes that wait for a slot.
  ///
  /// May contain lanes that are no longer ready.
  private var ready = FIFO<LaneID>()
  /// The lanes whose number of failures isn't 0.
  private var failing: Set<LaneID> = []
  /// The deadlines of backoffs.
  ///
  /// May contain backoffs that have ended.
  private var backOffs = DeadlineHeap<LaneDeadline>()
  /// The deadlines at which slots are released.
  ///
  /// May contain attempts that have ended.
  private var slotDeadlines = DeadlineHeap<LaneDeadline>()
  private var lastNumber: UInt64 = 0

  /// - Parameters:
  ///   - maximumInFlight: The number of slots.
  ///   - slotTimeout: The time after which a send releases its slot.
  init(maximumInFlight: Int, slotTimeout: Duration) {
    self.maximumInFlight = maximumInFlight
    self.slotTimeout = slotTimeout
  }

  /// Appends a mutation to its lane.
  ///
  /// - Parameter isDurable: Whether the mutation is stored, so that it may be sent. Otherwise it blocks the lane until
  ///   ``unblock(_:lane:)``.
  mutating func append(_ id: MutationID, lane laneID: LaneID, userID: String?, isDurable: Bool = true) {
    if !isDurable { blocked.insert(id) }
    lanes[laneID, default: Lane(userID: userID)].waiting.append(id)
    makeReadyOrForget(laneID)
  }

  /// Inserts a mutation at its place among the waiting mutations of its lane.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - laneID: The id of the lane.
  ///   - userID: The user of the lane.
  ///   - mustFollow: Returns whether another mutation of the lane must be sent after this one.
  mutating func insert(
    _ id: MutationID, lane laneID: LaneID, userID: String?, before mustFollow: (MutationID) -> Bool
  ) {
    lanes[laneID, default: Lane(userID: userID)].waiting.insert(id, before: mustFollow)
    makeReadyOrForget(laneID)
  }

  /// Moves a waiting mutation to its place among the waiting mutations of its lane.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - laneID: The id of the lane.
  ///   - mustFollow: Returns whether another mutation of the lane must be sent after this one.
  /// - Complexity: O(*m*) for the *m* mutations of the lane.
  mutating func move(_ id: MutationID, in laneID: LaneID, before mustFollow: (MutationID) -> Bool) {
    guard lanes[laneID]?.waiting.elements.contains(id) ?? false else { return }
    lanes[laneID]?.waiting.removeAll { $0 == id }
    lanes[laneID]?.waiting.insert(id, before: mustFollow)
    makeReadyOrForget(laneID)
  }

  /// Keeps a mutation, and those behind it, from being sent until ``unblock(_:lane:)``.
  mutating func block(_ id: MutationID) {
    blocked.insert(id)
  }

  /// Lets a mutation be sent.
  mutating func unblock(_ id: MutationID, lane laneID: LaneID) {
    blocked.remove(id)
    makeReadyOrForget(laneID)
  }

  /// Whether a mutation that is added now would be alone in its lane, with a free slot and nothing to wait for.
  func isFree(_ laneID: LaneID) -> Bool {
    lanes[laneID] == nil && usedSlotCount < maximumInFlight && !isPaused && !usersNeedingSignIn.contains(laneID.userID)
  }

  /// Whether the mutations of a lane wait for the network, a sign-in or the end of a backoff.
  func isStalled(_ laneID: LaneID) -> Bool {
    guard let lane = lanes[laneID] else { return false }
    if isPaused { return true }
    switch lane.status {
    case .backingOff, .needsSignIn: return true
    // A mutation in flight makes no difference: whatever the server answers, those behind it wait for the sign-in.
    case .idle, .ready, .inFlight: return usersNeedingSignIn.contains(lane.userID)
    }
  }

  /// The failures and the status of each lane, by id.
  ///
  /// - Parameter now: The present time.
  /// - Complexity: O(*n*) for *n* lanes.
  func report(at now: Duration) -> [LaneID: (failures: Int, status: RepositoryReport.LaneReport.Status)] {
    let deadlines = Dictionary(
      backOffs.items.map { ($0.element.number, $0.deadline) }, uniquingKeysWith: { first, _ in first })
    return lanes.mapValues { lane in
      let status: RepositoryReport.LaneReport.Status =
        switch lane.status {
        case .inFlight: .inFlight
        case _ where usersNeedingSignIn.contains(lane.userID): .needsSignIn
        case .needsSignIn: .needsSignIn
        case _ where isPaused: .offline
        case .backingOff(let number, _): .backingOff(max((deadlines[number] ?? now) - now, .zero))
        case .idle, .ready: .waiting
        }
      return (lane.failures, status)
    }
  }

  /// The lanes of a user, sorted by name.
  ///
  /// - Complexity: O(*n* log *n*) for *n* lanes.
  func lanes(of userID: String?) -> [LaneID] { lanes.filter { $0.value.userID == userID }.keys.sorted() }

  /// The waiting mutations of a lane, in order.
  func waiting(in laneID: LaneID) -> [MutationID] { lanes[laneID]?.waiting.elements ?? [] }

  /// Whether there is a mutation, waiting or in flight, whose user doesn't have to sign in.
  ///
  /// - Complexity: O(*n*) for *n* lanes.
  var hasMutationsToSend: Bool {
    // A lane may be empty: if its last mutation was removed while the lane waited for a slot, the lane stays until it
    // would get one.
    lanes.values.contains { lane in
      !usersNeedingSignIn.contains(lane.userID) && (lane.status.isInFlight || lane.waiting.first != nil)
    }
  }

  /// The waiting mutations of all lanes.
  ///
  /// Those of one lane are in order.
  ///
  /// - Complexity: O(*n* log *n* + *m*) for *n* lanes and *m* mutations.
  var allWaiting: [MutationID] { lanes.sorted { $0.key < $1.key }.flatMap(\.value.waiting.elements) }

  /// The first waiting mutations of a lane, in order.
  func upcoming(in laneID: LaneID, count: Int) -> [MutationID] { lanes[laneID]?.waiting.first(count) ?? [] }

  /// Returns the next step, and records that the mutation it names is in flight.
  mutating func next(at now: Duration) -> Step {
    if isPaused { return .wait(until: nil) }
    while let first = backOffs.first, first.deadline <= now {
      _ = backOffs.removeFirst()
      endBackOff(first.element)
    }
    while let first = slotDeadlines.first, first.deadline <= now || !hasSlot(first.element) {
      _ = slotDeadlines.removeFirst()
      releaseSlot(first.element)
    }
    guard usedSlotCount < maximumInFlight else {
      // The deadline of a slot matters only if a lane is ready to take the slot.
      let deadlines = [slotDeadlines.first?.deadline, backOffs.first?.deadline]
      return .wait(until: ready.first == nil ? backOffs.first?.deadline : deadlines.compactMap(\.self).min())
    }
    while let laneID = ready.removeFirst() {
      guard var lane = lanes[laneID], lane.status == .ready else { continue }
      if usersNeedingSignIn.contains(lane.userID) {
        lanes[laneID]?.status = .needsSignIn
        continue
      }
      guard let first = lane.waiting.first, !blocked.contains(first) else {
        // The first mutation was removed or blocked while the lane waited for a slot.
        lanes[laneID]?.status = .idle
        makeReadyOrForget(laneID)
        continue
      }
      // Taken out of the dictionary while it changes, to avoid a copy of its mutations.
      lanes[laneID] = nil
      _ = lane.waiting.removeFirst()
      lastNumber += 1
      lane.status = .inFlight(number: lastNumber, hasSlot: true, signInCount: signInCounts[lane.userID, default: 0])
      lanes[laneID] = lane
      usedSlotCount += 1
      slotDeadlines.insert(LaneDeadline(lane: laneID, number: lastNumber), deadline: now + slotTimeout)
      return .send(first, lane: laneID)
    }
    return .wait(until: backOffs.first?.deadline)
  }

  private func hasSlot(_ attempt: LaneDeadline) -> Bool {
    if case .inFlight(attempt.number, hasSlot: true, _) = lanes[attempt.lane]?.status { true } else { false }
  }

  private mutating func releaseSlot(_ attempt: LaneDeadline) {
    guard case .inFlight(attempt.number, hasSlot: true, let signInCount) = lanes[attempt.lane]?.status else { return }
    lanes[attempt.lane]?.status = .inFlight(number: attempt.number, hasSlot: false, signInCount: signInCount)
    usedSlotCount -= 1
  }

  /// Ends the attempt of a lane.
  ///
  /// - Returns: Whether the lane was in flight.
  private mutating func endAttempt(_ laneID: LaneID) -> Bool {
    guard case .inFlight(_, let hasSlot, _) = lanes[laneID]?.status else { return false }
    if hasSlot { usedSlotCount -= 1 }
    lanes[laneID]?.status = .idle
    return true
  }

  /// Records that the attempt of a lane is complete, so that its next mutation may be sent.
  mutating func complete(lane laneID: LaneID) {
    guard endAttempt(laneID) else { return }
    resetFailures(of: laneID)
    failing.remove(laneID)
    makeReadyOrForget(laneID)
  }

  private mutating func resetFailures(of laneID: LaneID) {
    lanes[laneID]?.failures = 0
    lanes[laneID]?.wasResumedAfterFetch = false
  }

  /// The number of consecutive failed attempts of a lane, counting the attempt in flight, or else the next, as failed.
  func failures(in laneID: LaneID) -> Int { (lanes[laneID]?.failures ?? 0) + 1 }

  /// Records that an attempt failed: the mutation returns to the front of its lane, which waits for a deadline.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - laneID: The id of the lane.
  ///   - deadline: The time of the next attempt.
  ///   - isServerDelay: Whether the server named the delay, so that ``retryNow()`` doesn't shorten it.
  ///   - isOutcomeUnknown: Whether it isn't known whether the server applied the mutation, so that
  ///     ``resumeAfterFetch()`` shortens only the first of several delays.
  mutating func backOff(
    _ id: MutationID, lane laneID: LaneID, until deadline: Duration, isServerDelay: Bool, isOutcomeUnknown: Bool = false
  ) {
    guard endAttempt(laneID) else { return }
    lanes[laneID]?.isOutcomeUnknown = isOutcomeUnknown
    lastNumber += 1
    lanes[laneID]?.waiting.prepend(id)
    lanes[laneID]?.failures += 1
    failing.insert(laneID)
    lanes[laneID]?.status = .backingOff(number: lastNumber, isServerDelay: isServerDelay)
    backOffs.insert(LaneDeadline(lane: laneID, number: lastNumber), deadline: deadline)
  }

  /// Records the end of an attempt that doesn't count as failed: the mutation returns to the front of its lane.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - laneID: The id of the lane.
  ///   - needsSignIn: Whether the server asked for a sign-in. All lanes of the user then wait for new credentials,
  ///     unless the credentials have changed since the attempt began.
  mutating func release(_ id: MutationID, lane laneID: LaneID, needsSignIn: Bool) {
    guard let lane = lanes[laneID], case .inFlight(_, _, let signInCount) = lane.status, endAttempt(laneID) else {
      return
    }
    lanes[laneID]?.waiting.prepend(id)
    if needsSignIn, signInCount == signInCounts[lane.userID, default: 0] {
      lanes[laneID]?.status = .needsSignIn
      usersNeedingSignIn.insert(lane.userID)
    } else {
      makeReadyOrForget(laneID)
    }
  }

  /// Removes a waiting mutation.
  mutating func remove(_ id: MutationID, lane laneID: LaneID) {
    blocked.remove(id)
    let wasFirst = lanes[laneID]?.waiting.first == id
    lanes[laneID]?.waiting.removeAll { $0 == id }
    if wasFirst, case .backingOff = lanes[laneID]?.status {
      // The removed mutation was the one whose attempt failed. The next one has not been tried.
      lanes[laneID]?.status = .idle
    }
    makeReadyOrForget(laneID)
  }

  /// Forgets all mutations, including those in flight.
  ///
  /// Keeps what is known of blocked mutations, of sign-ins, and of a pause.
  mutating func removeAll() {
    (lanes, failing, usedSlotCount) = ([:], [], 0)
    ready = FIFO()
    backOffs.removeAll()
    slotDeadlines.removeAll()
  }

  /// Stops sending until ``resume()``.
  ///
  /// Mutations in flight aren't affected.
  mutating func pause() {
    isPaused = true
  }

  /// Allows sending again after ``pause()``.
  mutating func resume() {
    isPaused = false
  }

  /// Ends all backoffs, except those whose delay the server named, and resets the number of failures.
  mutating func retryNow() {
    endBackOffs { _ in true }
    for laneID in failing { resetFailures(of: laneID) }
    failing = []
  }

  /// Ends backoffs because a fetch has succeeded, so the server can be reached.
  ///
  /// If the outcome of an attempt is unknown, the server may have been reached all along, and may have sent a reply
  /// that can't be read. Fetches would then make a loop of attempts without pauses. For such a lane, only the first
  /// fetch ends the backoff, and the number of failures isn't reset, so the next delays grow.
  mutating func resumeAfterFetch() {
    let isSuspect = { (lane: Lane) in lane.isOutcomeUnknown && lane.failures > 0 }
    endBackOffs { lane in !(isSuspect(lane) && lane.wasResumedAfterFetch) }
    for laneID in failing {
      if let lane = lanes[laneID], isSuspect(lane) { continue }
      resetFailures(of: laneID)
      failing.remove(laneID)
    }
  }

  /// Ends the backoffs of the lanes that satisfy a predicate, except those whose delay the server named.
  private mutating func endBackOffs(where isEnding: (Lane) -> Bool) {
    let items = backOffs.items
    backOffs.removeAll()
    for item in items {
      guard let lane = lanes[item.element.lane], case .backingOff(item.element.number, let isServerDelay) = lane.status
      else { continue }
      if isServerDelay || !isEnding(lane) {
        backOffs.insert(item.element, deadline: item.deadline)
      } else {
        lanes[item.element.lane]?.wasResumedAfterFetch = true
        endBackOff(item.element)
      }
    }
  }

  /// Lets the mutations of a user be sent again, because the user's credentials have changed.
  mutating func signedIn(userID: String?) {
    usersNeedingSignIn.remove(userID)
    signInCounts[userID, default: 0] += 1
    for laneID in lanes(of: userID) where lanes[laneID]?.status == .needsSignIn {
      lanes[laneID]?.status = .idle
      makeReadyOrForget(laneID)
    }
  }

  private mutating func endBackOff(_ backOff: LaneDeadline) {
    guard case .backingOff(backOff.number, _) = lanes[backOff.lane]?.status else { return }
    lanes[backOff.lane]?.status = .idle
    makeReadyOrForget(backOff.lane)
  }

  /// Makes an idle lane ready unless its first mutation is blocked, or forgets the lane if it is empty.
  private mutating func makeReadyOrForget(_ laneID: LaneID) {
    guard lanes[laneID]?.status == .idle else { return }
    guard let first = lanes[laneID]?.waiting.first else {
      lanes[laneID] = nil
      failing.remove(laneID)
      return
    }
    if blocked.contains(first) { return }
    lanes[laneID]?.status = .ready
    ready.append(laneID)
  }
}
