/// Decides which mutation is sent next, and which mutations wait.
///
/// Each ordering key of a user has a lane, a FIFO of mutations. Only the first mutation of a lane may be in flight, and
/// the next one waits until the first needs no further attempt. A lane needs one of a limited number of slots to send.
/// Ready lanes get free slots in the order in which they became ready. A send that exceeds a time limit releases its
/// slot, so it delays other lanes by that time at most. From then on, its lane is *slow*, until a send stays within the
/// limit. Slow lanes have slots of their own, so they no longer delay the others.
///
/// If several sends were in flight when a process ended, any of them may have ended it. Their lanes are *suspects*:
/// each of them sends alone first, so that the next end of a process shows whether its send is the cause.
///
/// If attempts of many lanes fail in a row, the server probably can't be reached. During such an ``Outage``, one lane
/// at a time sends, and one more if the first is slow. Lanes that haven't tried yet come first.
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

  /// A reason for which nothing is sent.
  enum Pause {
    case offline
    /// The repository is suspended; see ``SyncedRepository/suspend()``.
    case suspended
  }

  private enum SlotKind {
    case suspect
    case usual
    case slow
  }

  private enum Status: Equatable {
    /// The first mutation is blocked or held.
    case idle
    /// Waits for a free slot.
    case ready
    /// Has a slot unless the send has exceeded its time limit.
    ///
    /// `number` identifies the attempt. `signInCount` is the number of times that the user had signed in when the
    /// attempt began.
    case inFlight(number: UInt64, slot: SlotKind?, signInCount: UInt64)
    /// Waits for a deadline.
    ///
    /// `number` identifies the wait.
    case backingOff(number: UInt64, isServerDelay: Bool)
    case needsSignIn

    var isInFlight: Bool { if case .inFlight = self { true } else { false } }
  }

  private struct Lane {
    var userID: String?
    var status = Status.idle
    /// The waiting mutations in order, without the one in flight.
    var waiting = FIFO<MutationID>()
    /// The number of failed attempts since the last ``MutationLanes/complete(lane:)`` or ``MutationLanes/retryNow()``.
    var failures = 0
    /// Whether a fetch ended the last backoff before its deadline.
    var wasResumedAfterFetch = false
    /// Whether the last send exceeded the time limit.
    var isSlow = false
  }

  /// The slots of one kind, and the lanes that wait for one.
  private struct Slots {
    /// The number of lanes in flight that have a slot.
    var usedCount = 0
    /// The lanes that wait for a slot.
    ///
    /// May contain lanes that are no longer ready, or now wait for a slot of the other kind.
    var ready = FIFO<LaneID>()
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
  /// The reasons for which nothing is sent.
  private(set) var pauses: Set<Pause> = []
  /// The mutations that may not be sent yet.
  ///
  /// They keep their places in their lanes and block the mutations behind them.
  private var blocked: Set<MutationID> = []
  /// The mutations that this program can't read; see ``HeldMutation``.
  ///
  /// They keep their places in their lanes, and the mutations behind them from being sent.
  private var held: Set<MutationID> = []
  /// Whether a mutation is held whose lane isn't known, so that no mutation may be sent.
  var holdsAll = false
  private var slots: [SlotKind: Slots] = [:]
  /// The lanes that have to send alone first.
  private var suspects: Set<LaneID> = []
  /// The users who have to sign in again.
  private(set) var usersNeedingSignIn: Set<String?> = []
  /// The number of times that each user has signed in.
  private var signInCounts: [String?: UInt64] = [:]
  private var lanes: [LaneID: Lane] = [:]
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
  private var outage: Outage

  /// - Parameters:
  ///   - maximumInFlight: The number of slots of each kind.
  ///   - slotTimeout: The time after which a send releases its slot.
  init(maximumInFlight: Int, slotTimeout: Duration) {
    self.maximumInFlight = maximumInFlight
    self.slotTimeout = slotTimeout
    outage = Outage(laneCount: 4 * maximumInFlight)
  }

  /// Appends a mutation to its lane.
  ///
  /// - Parameter isDurable: Whether the mutation is stored, so that it may be sent. Otherwise it blocks the lane until
  ///   ``unblock(_:lane:)``.
  mutating func append(_ id: MutationID, lane laneID: LaneID, userID: String?, isDurable: Bool = true) {
    if !isDurable { blocked.insert(id) }
    lanes[laneID, default: Lane(userID: userID)].waiting.append(id)
    setUser(userID, of: laneID)
    outage.endDelay()
    makeReadyOrForget(laneID)
  }

  /// Inserts a mutation that is held at its place among the waiting mutations of its lane.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - laneID: The id of the lane.
  ///   - mustFollow: Returns whether another mutation of the lane must be sent after this one; `nil` if unknown.
  mutating func hold(_ id: MutationID, lane laneID: LaneID, before mustFollow: (MutationID) -> Bool?) {
    held.insert(id)
    insert(id, lane: laneID, userID: laneID.userID, before: mustFollow)
  }

  /// Inserts a mutation at its place among the waiting mutations of its lane.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - laneID: The id of the lane.
  ///   - userID: The user of the lane.
  ///   - mustFollow: Returns whether another mutation of the lane must be sent after this one; `nil` if unknown.
  mutating func insert(
    _ id: MutationID, lane laneID: LaneID, userID: String?, before mustFollow: (MutationID) -> Bool?
  ) {
    lanes[laneID, default: Lane(userID: userID)].waiting.insert(id, before: mustFollow)
    setUser(userID, of: laneID)
    makeReadyOrForget(laneID)
  }

  /// Records the user of a lane, which isn't known if the lane's first mutation was one that this program can't read.
  private mutating func setUser(_ userID: String?, of laneID: LaneID) {
    if let userID, lanes[laneID]?.userID == nil { lanes[laneID]?.userID = userID }
  }

  /// Moves a waiting mutation to its place among the waiting mutations of its lane.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - laneID: The id of the lane.
  ///   - mustFollow: Returns whether another mutation of the lane must be sent after this one; `nil` if unknown.
  /// - Complexity: O(*m*) for the *m* mutations of the lane.
  mutating func move(_ id: MutationID, in laneID: LaneID, before mustFollow: (MutationID) -> Bool?) {
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
  mutating func unblock(_ id: MutationID, lane laneID: LaneID?) {
    blocked.remove(id)
    if let laneID { makeReadyOrForget(laneID) }
  }

  /// Whether a mutation that is added now would be alone in its lane, with a free slot and nothing to wait for.
  func isFree(_ laneID: LaneID) -> Bool {
    lanes[laneID] == nil && slots[.usual, default: Slots()].usedCount < maximumInFlight && suspects.isEmpty && !isPaused
      && !holdsAll && !outage.isActive && !usersNeedingSignIn.contains(laneID.userID)
  }

  /// Whether the mutations of a lane wait for the network, the server, a sign-in, the end of a backoff, or a mutation
  /// that this program can't read.
  func isStalled(_ laneID: LaneID) -> Bool {
    guard let lane = lanes[laneID] else { return false }
    if isPaused || holdsAll { return true }
    if !held.isEmpty, lane.waiting.elements.contains(where: held.contains) { return true }
    switch lane.status {
    case .backingOff, .needsSignIn: return true
    case .ready where outage.isActive: return true
    // A mutation in flight makes no difference: whatever the server answers, those behind it wait for the sign-in.
    case .idle, .ready, .inFlight: return usersNeedingSignIn.contains(lane.userID)
    }
  }

  /// The failures and the status of each lane, by id.
  ///
  /// - Parameters:
  ///   - now: The present time.
  ///   - ids: The mutations of keys whose values this program can't read.
  /// - Complexity: O(*n*) for *n* lanes.
  func report(
    at now: Duration, _ ids: Set<MutationID>
  ) -> [LaneID: (failures: Int, status: RepositoryReport.LaneReport.Status)] {
    let unreadable = held.union(ids)
    let deadlines = Dictionary(
      backOffs.items.map { ($0.element.number, $0.deadline) }, uniquingKeysWith: { first, _ in first })
    return lanes.mapValues { lane in
      let status: RepositoryReport.LaneReport.Status =
        switch lane.status {
        case .inFlight: .inFlight
        case _ where usersNeedingSignIn.contains(lane.userID): .needsSignIn
        case .needsSignIn: .needsSignIn
        case _ where pauses.contains(.suspended): .suspended
        case _ where isPaused: .offline
        case _ where holdsAll || lane.waiting.first.map(unreadable.contains) ?? false: .held
        case .backingOff(let number, _): .backingOff(max((deadlines[number] ?? now) - now, .zero))
        case .ready where outage.isActive: .backingOff(max((outage.nextAttempt ?? now) - now, .zero))
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

  /// Whether there is a mutation, waiting or in flight, whose user doesn't have to sign in, and that isn't behind one
  /// that this program can't read.
  ///
  /// - Complexity: O(*n*) for *n* lanes.
  var hasMutationsToSend: Bool {
    // A lane may be empty: if its last mutation was removed while the lane waited for a slot, the lane stays until it
    // would get one.
    lanes.values.contains { lane in
      if usersNeedingSignIn.contains(lane.userID) { return false }
      return lane.status.isInFlight || lane.waiting.first.map { !holdsAll && !held.contains($0) } ?? false
    }
  }

  /// The waiting mutations of all lanes.
  ///
  /// Those of one lane are in order.
  ///
  /// - Complexity: O(*n* log *n* + *m*) for *n* lanes and *m* mutations.
  var allWaiting: [MutationID] { lanes.sorted { $0.key < $1.key }.flatMap(\.value.waiting.elements) }

  /// The first waiting mutations of a lane, in order, up to one that this program can't read.
  func upcoming(in laneID: LaneID, count: Int) -> [MutationID] {
    Array((lanes[laneID]?.waiting.first(count) ?? []).prefix { !held.contains($0) })
  }

  /// Returns the next step, and records that the mutation it names is in flight.
  mutating func next(at now: Duration) -> Step {
    if isPaused || holdsAll { return .wait(until: nil) }
    endExpiredBackOffs(at: now)
    while let first = slotDeadlines.first, first.deadline <= now || !hasSlot(first.element) {
      _ = slotDeadlines.removeFirst()
      releaseSlot(first.element)
    }
    if let step = next(.suspect, at: now) { return step }
    // The suspects may have been removed.
    if !isProbing, let step = next(.usual, at: now) ?? next(.slow, at: now) { return step }
    var deadlines = [backOffs.first?.deadline]
    // The deadlines of a slot and of an outage matter only if a lane is ready to send.
    if isAnyReady { deadlines += [slotDeadlines.first?.deadline, outage.nextAttempt.flatMap { $0 > now ? $0 : nil }] }
    return .wait(until: deadlines.compactMap(\.self).min())
  }

  private var isAnyReady: Bool { slots.values.contains { $0.ready.first != nil } }

  private mutating func endExpiredBackOffs(at now: Duration) {
    while let first = backOffs.first, first.deadline <= now {
      _ = backOffs.removeFirst()
      endBackOff(first.element, isAfterFetch: false)
    }
  }

  /// Whether ``next(at:)`` would return a mutation if all slots were free.
  mutating func isDue(at now: Duration) -> Bool {
    if isPaused || holdsAll { return false }
    endExpiredBackOffs(at: now)
    let isReady = [SlotKind.suspect, .usual, .slow].contains { firstReady($0) != nil }
    return isReady && outage.allowsAttempt(at: now)
  }

  /// The time at which the next lane is due, if none is now; `nil` if there is none.
  var nextDeadline: Duration? {
    if isPaused || holdsAll { return nil }
    return [backOffs.first?.deadline, isAnyReady ? outage.nextAttempt : nil].compactMap(\.self).min()
  }

  /// The time at which the first of the present backoffs ends; `nil` if there is none.
  ///
  /// - Parameter ids: The mutations whose backoffs don't count.
  /// - Complexity: O(*n*) for *n* backoffs.
  func endOfFirstBackOff(except ids: Set<MutationID>) -> Duration? {
    if isAnyReady, let nextAttempt = outage.nextAttempt { return nextAttempt }
    return backOffs.items.filter { item in
      guard let lane = lanes[item.element.lane], case .backingOff(item.element.number, _) = lane.status else {
        return false
      }
      return !(lane.waiting.first.map(ids.contains) ?? false)
    }.map(\.deadline).min()
  }

  /// Returns the first lane that is ready for a slot of one kind, and drops those before it that no longer are.
  private mutating func firstReady(_ kind: SlotKind) -> LaneID? {
    while let laneID = slots[kind]?.ready.first {
      if let lane = lanes[laneID], lane.status == .ready, slotKind(of: laneID) == kind {
        if usersNeedingSignIn.contains(lane.userID) {
          lanes[laneID]?.status = .needsSignIn
        } else if let first = lane.waiting.first, maySend(first) {
          return laneID
        } else {
          // The first mutation was removed, blocked or held while the lane waited for a slot.
          lanes[laneID]?.status = .idle
          makeReadyOrForget(laneID)
        }
      }
      _ = slots[kind]?.ready.removeFirst()
    }
    return nil
  }

  /// Whether a suspect sends alone now.
  private var isProbing: Bool {
    suspects.contains { laneID in
      switch lanes[laneID]?.status {
      case .ready, .inFlight(_, slot: .suspect, _): true
      default: false
      }
    }
  }

  private func slotKind(of laneID: LaneID) -> SlotKind {
    if suspects.contains(laneID) { return .suspect }
    return lanes[laneID]?.isSlow ?? false ? .slow : .usual
  }

  /// Makes lanes send alone first, because each of their first mutations may have ended a process.
  mutating func suspect(_ laneIDs: [LaneID]) {
    suspects.formUnion(laneIDs)
    for laneID in laneIDs where lanes[laneID]?.status == .ready {
      slots[.suspect, default: Slots()].ready.append(laneID)
    }
  }

  /// Returns the next mutation that a slot of one kind is free for, or `nil` if there is none.
  private mutating func next(_ kind: SlotKind, at now: Duration) -> Step? {
    let limit = kind == .suspect || outage.isActive ? 1 : maximumInFlight
    guard outage.allowsAttempt(at: now), slots[kind, default: Slots()].usedCount < limit, let laneID = firstReady(kind),
      var lane = lanes[laneID]
    else {
      return nil
    }
    // Taken out of the dictionary while it changes, to avoid a copy of its mutations.
    lanes[laneID] = nil
    guard let first = lane.waiting.removeFirst() else { preconditionFailure("A lane that is ready isn't empty.") }
    lastNumber += 1
    lane.status = .inFlight(number: lastNumber, slot: kind, signInCount: signInCounts[lane.userID, default: 0])
    lanes[laneID] = lane
    _ = slots[kind]?.ready.removeFirst()
    slots[kind]?.usedCount += 1
    slotDeadlines.insert(LaneDeadline(lane: laneID, number: lastNumber), deadline: now + slotTimeout)
    return .send(first, lane: laneID)
  }

  private func hasSlot(_ attempt: LaneDeadline) -> Bool {
    if case .inFlight(attempt.number, slot: _?, _) = lanes[attempt.lane]?.status { true } else { false }
  }

  private mutating func releaseSlot(_ attempt: LaneDeadline) {
    guard case .inFlight(attempt.number, let kind?, let signInCount) = lanes[attempt.lane]?.status else { return }
    lanes[attempt.lane]?.status = .inFlight(number: attempt.number, slot: nil, signInCount: signInCount)
    returnSlot(kind, of: attempt.lane, isSlow: true)
  }

  private mutating func returnSlot(_ kind: SlotKind, of laneID: LaneID, isSlow: Bool) {
    slots[kind, default: Slots()].usedCount -= 1
    lanes[laneID]?.isSlow = isSlow
    suspects.remove(laneID)
  }

  /// Ends the attempt of a lane.
  ///
  /// - Returns: Whether the lane was in flight.
  private mutating func endAttempt(_ laneID: LaneID) -> Bool {
    guard case .inFlight(_, let kind, _) = lanes[laneID]?.status else { return false }
    if let kind { returnSlot(kind, of: laneID, isSlow: false) }
    lanes[laneID]?.status = .idle
    return true
  }

  /// Records that the attempt of a lane is complete, so that its next mutation may be sent.
  mutating func complete(lane laneID: LaneID) {
    guard endAttempt(laneID) else { return }
    outage.end()
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

  /// The number of consecutive failed attempts on which the delay of a lane depends, counted like ``failures(in:)``.
  func failuresForDelay(in laneID: LaneID) -> Int { max(failures(in: laneID), outage.failures + 1) }

  /// Records that an attempt failed: the mutation returns to the front of its lane, which waits for a deadline.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - laneID: The id of the lane.
  ///   - deadline: The time of the next attempt.
  ///   - isServerDelay: Whether the server named the delay, so that ``retryNow()`` doesn't shorten it.
  ///   - hasRequested: Whether the request had begun.
  /// - Returns: Whether an ``Outage`` begins.
  @discardableResult
  mutating func backOff(
    _ id: MutationID, lane laneID: LaneID, until deadline: Duration, isServerDelay: Bool, hasRequested: Bool = true
  ) -> Bool {
    guard endAttempt(laneID) else { return false }
    lastNumber += 1
    lanes[laneID]?.waiting.prepend(id)
    lanes[laneID]?.failures += 1
    failing.insert(laneID)
    lanes[laneID]?.status = .backingOff(number: lastNumber, isServerDelay: isServerDelay)
    backOffs.insert(LaneDeadline(lane: laneID, number: lastNumber), deadline: deadline)
    if isServerDelay { outage.end() }
    return hasRequested && !isServerDelay && outage.recordFailure(of: laneID, until: deadline)
  }

  /// Makes a lane wait whose first mutation failed in another process, or before this repository led.
  ///
  /// - Parameters:
  ///   - laneID: The id of the lane.
  ///   - deadline: The time of the next attempt.
  ///   - backOff: The stored backoff of the lane's first mutation.
  mutating func resumeBackOff(lane laneID: LaneID, until deadline: Duration, _ backOff: MutationRecord.BackOff) {
    guard let lane = lanes[laneID], lane.status == .ready || lane.status == .idle else { return }
    lastNumber += 1
    lanes[laneID]?.failures = backOff.failures
    failing.insert(laneID)
    lanes[laneID]?.status = .backingOff(number: lastNumber, isServerDelay: backOff.isServerDelay)
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
    if needsSignIn { outage.end() }
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
    held.remove(id)
    let wasFirst = lanes[laneID]?.waiting.first == id
    lanes[laneID]?.waiting.removeAll { $0 == id }
    if wasFirst, case .backingOff = lanes[laneID]?.status {
      // The removed mutation was the one whose attempt failed. The next one has not been tried.
      lanes[laneID]?.status = .idle
    }
    makeReadyOrForget(laneID)
  }

  private var isPaused: Bool { !pauses.isEmpty }

  /// Stops sending until ``resume(_:)`` ends each pause.
  ///
  /// Mutations in flight aren't affected.
  mutating func pause(_ pause: Pause) {
    pauses.insert(pause)
  }

  mutating func resume(_ pause: Pause) {
    pauses.remove(pause)
    outage.end()
  }

  /// Ends all backoffs, except those whose delay the server named, and resets the number of failures.
  mutating func retryNow() {
    outage.end()
    endBackOffs(isAfterFetch: false)
    for laneID in failing { resetFailures(of: laneID) }
    failing = []
  }

  /// Ends backoffs because a fetch has succeeded, so the server can be reached.
  ///
  /// If the next attempt fails too, the server was reached all along, and it doesn't help that fetches succeed. So of
  /// two backoffs in a row, a fetch ends only the first, and the delays go on growing. Otherwise steady fetches would
  /// make a loop of attempts without pauses.
  mutating func resumeAfterFetch() {
    // The next attempt shows whether the server accepts changes, too.
    outage.endDelay()
    endBackOffs(isAfterFetch: true)
  }

  /// Ends backoffs, except those whose delay the server named.
  private mutating func endBackOffs(isAfterFetch: Bool) {
    let items = backOffs.items
    backOffs.removeAll()
    for item in items {
      guard let lane = lanes[item.element.lane], case .backingOff(item.element.number, let isServerDelay) = lane.status
      else { continue }
      if isServerDelay || (isAfterFetch && lane.wasResumedAfterFetch) {
        backOffs.insert(item.element, deadline: item.deadline)
      } else {
        endBackOff(item.element, isAfterFetch: isAfterFetch)
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

  private mutating func endBackOff(_ backOff: LaneDeadline, isAfterFetch: Bool) {
    guard case .backingOff(backOff.number, _) = lanes[backOff.lane]?.status else { return }
    lanes[backOff.lane]?.status = .idle
    lanes[backOff.lane]?.wasResumedAfterFetch = isAfterFetch
    makeReadyOrForget(backOff.lane)
  }

  /// Makes an idle lane ready unless its first mutation is blocked or held, or forgets the lane if it is empty.
  private mutating func makeReadyOrForget(_ laneID: LaneID) {
    guard lanes[laneID]?.status == .idle else { return }
    guard let first = lanes[laneID]?.waiting.first else {
      lanes[laneID] = nil
      failing.remove(laneID)
      suspects.remove(laneID)
      return
    }
    guard maySend(first) else { return }
    lanes[laneID]?.status = .ready
    if outage.isActive, !failing.contains(laneID) {
      slots[slotKind(of: laneID), default: Slots()].ready.prepend(laneID)
    } else {
      slots[slotKind(of: laneID), default: Slots()].ready.append(laneID)
    }
  }

  private func maySend(_ id: MutationID) -> Bool { !blocked.contains(id) && !held.contains(id) }
}
