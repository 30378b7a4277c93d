/// Decides which mutation is sent next, and which have to wait.
///
/// Each ordering key has a lane. Only the first mutation of a lane is sent, and the next one when it has left. Lanes that
/// may send stand in line for a free place in the order they became ready. A send that takes long gives up its place, so a
/// stuck lane delays no other for longer than that.
///
/// A pure state machine. Times are measured from the creation of the repository.
///
/// - Complexity: O(1) amortised for each function, plus O(log *n*) for *n* lanes that back off or are in flight;
///   ``remove(_:lane:)`` and ``waiting(in:)`` are O(*m*) for the *m* mutations of the lane, ``retryNow()`` is O(*n*) for the
///   lanes whose last attempt failed, and ``signedIn(userID:)`` for all lanes.
struct MutationLanes {
  enum Step: Equatable {
    case send(MutationID, lane: String)
    /// Nothing is sent before this time, or before something else happens.
    case wait(until: Duration?)
  }

  private enum Status: Equatable {
    case idle
    /// In line for a free place.
    case ready
    /// Has a place among those that are counted unless it has taken long. The number is that of the attempt.
    ///
    /// `signIns` is how often the user had signed in when it began.
    case inFlight(number: UInt64, hasPlace: Bool, signIns: UInt64)
    /// Until a deadline. The number is that of the wait.
    case backingOff(number: UInt64, isServerDelay: Bool)
    case needsSignIn

    var isInFlight: Bool { if case .inFlight = self { true } else { false } }
  }

  private struct Lane {
    let userID: String?
    var status = Status.idle
    /// In order, without the one that is in flight.
    var waiting = FIFO<MutationID>()
    /// Failed attempts since the last success or ``MutationLanes/retryNow()``.
    var failures = 0
  }

  /// What ends at a deadline, unless the lane has gone on to something else.
  private struct Turn {
    let lane: String
    let number: UInt64
  }

  private let maximumInFlight: Int
  private let longestPlace: Duration
  /// Whether nothing is sent, because the network is away.
  private(set) var isPaused = false
  /// The mutations that aren't durable yet: they have their place in their lane, and block it.
  private var undurable: Set<MutationID> = []
  /// The number of lanes in flight that have a place.
  private var placeCount = 0
  /// The users who have to sign in again.
  private(set) var signedOutUsers: Set<String?> = []
  /// How often each user has signed in.
  private var signInCounts: [String?: UInt64] = [:]
  private var lanes: [String: Lane] = [:]
  /// May name lanes that are no longer ready.
  private var ready = FIFO<String>()
  /// The lanes whose last attempt failed.
  private var failing: Set<String> = []
  /// When backoffs end.
  ///
  /// May hold some that are over.
  private var backOffs = DeadlineHeap<Turn>()
  /// When places are given up.
  ///
  /// May hold attempts that are over.
  private var places = DeadlineHeap<Turn>()
  private var lastNumber: UInt64 = 0

  /// - Parameters:
  ///   - maximumInFlight: The number of mutations that are sent at the same time.
  ///   - longestPlace: How long a mutation that is being sent counts as one of them.
  init(maximumInFlight: Int, longestPlace: Duration) {
    self.maximumInFlight = maximumInFlight
    self.longestPlace = longestPlace
  }

  /// Adds a mutation behind the others of its lane.
  ///
  /// - Parameter isDurable: Whether it may be sent. Otherwise it has its place, and ``makeDurable(_:lane:)`` follows.
  mutating func append(_ id: MutationID, lane name: String, userID: String?, isDurable: Bool = true) {
    if !isDurable { undurable.insert(id) }
    lanes[name, default: Lane(userID: userID)].waiting.append(id)
    makeReady(name)
  }

  /// Adds a mutation in its place among those of its lane that aren't in flight.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - name: Its lane.
  ///   - userID: The user of the lane.
  ///   - isBehind: Whether another mutation of the lane has to be sent later.
  mutating func insert(_ id: MutationID, lane name: String, userID: String?, before isBehind: (MutationID) -> Bool) {
    lanes[name, default: Lane(userID: userID)].waiting.insert(id, before: isBehind)
    makeReady(name)
  }

  /// Gives a mutation that waits another place, behind those that have to be sent before it.
  ///
  /// - Complexity: O(*m*) for the *m* mutations of the lane.
  mutating func move(_ id: MutationID, in name: String, before isBehind: (MutationID) -> Bool) {
    guard lanes[name]?.waiting.elements.contains(id) ?? false else { return }
    lanes[name]?.waiting.removeAll { $0 == id }
    lanes[name]?.waiting.insert(id, before: isBehind)
    makeReady(name)
  }

  /// Lets a mutation not be sent, nor those behind it, until ``makeDurable(_:lane:)``.
  mutating func hold(_ id: MutationID) {
    undurable.insert(id)
  }

  /// Lets a mutation be sent.
  mutating func makeDurable(_ id: MutationID, lane name: String) {
    undurable.remove(id)
    makeReady(name)
  }

  /// Whether a mutation that is added now would be sent at once.
  func isFree(_ name: String) -> Bool { lanes[name] == nil && placeCount < maximumInFlight && !isPaused }

  /// Whether the lane's mutations wait for something other than their turn.
  func isHeldUp(_ name: String) -> Bool {
    guard let lane = lanes[name] else { return false }
    if isPaused { return true }
    switch lane.status {
    case .backingOff, .needsSignIn: return true
    // Also behind one in flight, as no answer to it lets them be sent.
    case .idle, .ready, .inFlight: return signedOutUsers.contains(lane.userID)
    }
  }

  /// What each lane waits for, by its name.
  ///
  /// - Parameter now: The present time.
  /// - Complexity: O(*n*) for *n* lanes.
  func report(at now: Duration) -> [String: (failures: Int, status: RepositoryReport.LaneReport.Status)] {
    let deadlines = Dictionary(
      backOffs.items.map { ($0.element.number, $0.deadline) }, uniquingKeysWith: { first, _ in first })
    return lanes.mapValues { lane in
      let status: RepositoryReport.LaneReport.Status =
        switch lane.status {
        case .inFlight: .inFlight
        case _ where signedOutUsers.contains(lane.userID): .needsSignIn
        case .needsSignIn: .needsSignIn
        case _ where isPaused: .offline
        case .backingOff(let number, _): .backingOff(max((deadlines[number] ?? now) - now, .zero))
        case .idle, .ready: .waiting
        }
      return (lane.failures, status)
    }
  }

  /// The lanes of a user, in the order of their names.
  func lanes(of userID: String?) -> [String] { lanes.filter { $0.value.userID == userID }.keys.sorted() }

  /// The mutations of a lane that aren't in flight, in order.
  func waiting(in name: String) -> [MutationID] { lanes[name]?.waiting.elements ?? [] }

  /// Whether a mutation waits, or is in flight, that no user has to sign in for.
  ///
  /// - Complexity: O(*n*) for *n* lanes.
  var canSend: Bool { lanes.values.contains { !signedOutUsers.contains($0.userID) } }

  /// The mutations that aren't in flight, those of a lane in order.
  var allWaiting: [MutationID] { lanes.sorted { $0.key < $1.key }.flatMap(\.value.waiting.elements) }

  /// The first mutations of a lane behind the one that is in flight, in order.
  func upcoming(in name: String, count: Int) -> [MutationID] { lanes[name]?.waiting.first(count) ?? [] }

  /// What to do now.
  mutating func next(at now: Duration) -> Step {
    if isPaused { return .wait(until: nil) }
    while let first = backOffs.first, first.deadline <= now {
      _ = backOffs.removeFirst()
      endBackOff(first.element)
    }
    while let first = places.first, first.deadline <= now || !hasPlace(first.element) {
      _ = places.removeFirst()
      giveUpPlace(first.element)
    }
    guard placeCount < maximumInFlight else {
      let deadlines = [places.first?.deadline, backOffs.first?.deadline]
      return .wait(until: ready.first == nil ? backOffs.first?.deadline : deadlines.compactMap(\.self).min())
    }
    while let name = ready.removeFirst() {
      guard let lane = lanes[name], lane.status == .ready else { continue }
      if signedOutUsers.contains(lane.userID) {
        lanes[name]?.status = .needsSignIn
        continue
      }
      guard let first = lane.waiting.first, !undurable.contains(first) else {
        // Its first mutation was removed while the lane stood in line.
        lanes[name]?.status = .idle
        makeReady(name)
        continue
      }
      lanes[name] = nil
      var sending = lane
      let id = first
      _ = sending.waiting.removeFirst()
      lastNumber += 1
      sending.status = .inFlight(number: lastNumber, hasPlace: true, signIns: signInCounts[lane.userID, default: 0])
      lanes[name] = sending
      placeCount += 1
      places.insert(Turn(lane: name, number: lastNumber), deadline: now + longestPlace)
      return .send(id, lane: name)
    }
    return .wait(until: backOffs.first?.deadline)
  }

  private func hasPlace(_ attempt: Turn) -> Bool {
    if case .inFlight(attempt.number, hasPlace: true, _) = lanes[attempt.lane]?.status { true } else { false }
  }

  private mutating func giveUpPlace(_ attempt: Turn) {
    guard case .inFlight(attempt.number, hasPlace: true, let signIns) = lanes[attempt.lane]?.status else { return }
    lanes[attempt.lane]?.status = .inFlight(number: attempt.number, hasPlace: false, signIns: signIns)
    placeCount -= 1
  }

  /// Ends the attempt of a lane.
  ///
  /// - Returns: Whether it was in flight.
  private mutating func land(_ name: String) -> Bool {
    guard case .inFlight(_, let hasPlace, _) = lanes[name]?.status else { return false }
    if hasPlace { placeCount -= 1 }
    lanes[name]?.status = .idle
    return true
  }

  /// The mutation in flight has left its lane: the next one follows.
  mutating func complete(lane name: String) {
    guard land(name) else { return }
    lanes[name]?.failures = 0
    failing.remove(name)
    makeReady(name)
  }

  /// The number of failed attempts of a lane, the present one included.
  func failures(in name: String) -> Int { (lanes[name]?.failures ?? 0) + 1 }

  /// The attempt failed: the mutation is first in its lane again, which waits until a deadline.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - name: Its lane.
  ///   - deadline: When to try again.
  ///   - isServerDelay: Whether the server named the time, so that ``retryNow()`` doesn't shorten it.
  mutating func backOff(_ id: MutationID, lane name: String, until deadline: Duration, isServerDelay: Bool) {
    guard land(name) else { return }
    lastNumber += 1
    lanes[name]?.waiting.prepend(id)
    lanes[name]?.failures += 1
    failing.insert(name)
    lanes[name]?.status = .backingOff(number: lastNumber, isServerDelay: isServerDelay)
    backOffs.insert(Turn(lane: name, number: lastNumber), deadline: deadline)
  }

  /// The attempt was broken off without counting: the mutation is first in its lane again.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - name: Its lane.
  ///   - needsSignIn: Whether all lanes of the user wait for new credentials. They don't if the attempt was made with
  ///     older credentials than the present ones, so that its failure says nothing of these.
  mutating func release(_ id: MutationID, lane name: String, needsSignIn: Bool) {
    guard let lane = lanes[name], case .inFlight(_, _, let signIns) = lane.status, land(name) else { return }
    lanes[name]?.waiting.prepend(id)
    if needsSignIn, signIns == signInCounts[lane.userID, default: 0] {
      lanes[name]?.status = .needsSignIn
      signedOutUsers.insert(lane.userID)
    } else {
      makeReady(name)
    }
  }

  /// Removes a mutation that isn't in flight.
  mutating func remove(_ id: MutationID, lane name: String) {
    undurable.remove(id)
    let wasFirst = lanes[name]?.waiting.first == id
    lanes[name]?.waiting.removeAll { $0 == id }
    if wasFirst, case .backingOff = lanes[name]?.status {
      // It was the one whose attempt failed. The next in line has not been tried.
      lanes[name]?.status = .idle
    }
    makeReady(name)
  }

  /// Forgets all mutations, also those in flight; but not which ones are held, or who has to sign in.
  mutating func removeAll() {
    (lanes, failing, placeCount) = ([:], [], 0)
    ready = FIFO()
    backOffs.removeAll()
    places.removeAll()
  }

  /// Lets all mutations that aren't in flight wait, until ``resume()``.
  mutating func pause() {
    isPaused = true
  }

  mutating func resume() {
    isPaused = false
  }

  /// Ends all waits, except those that a server named, and starts the backoff anew.
  mutating func retryNow() {
    let items = backOffs.items
    backOffs.removeAll()
    for item in items {
      if case .backingOff(item.element.number, isServerDelay: true) = lanes[item.element.lane]?.status {
        backOffs.insert(item.element, deadline: item.deadline)
      } else {
        endBackOff(item.element)
      }
    }
    for name in failing { lanes[name]?.failures = 0 }
    failing = []
  }

  /// Sends the mutations of a user again, whose credentials have changed.
  mutating func signedIn(userID: String?) {
    signedOutUsers.remove(userID)
    signInCounts[userID, default: 0] += 1
    for name in lanes(of: userID) where lanes[name]?.status == .needsSignIn {
      lanes[name]?.status = .idle
      makeReady(name)
    }
  }

  private mutating func endBackOff(_ backOff: Turn) {
    guard case .backingOff(backOff.number, _) = lanes[backOff.lane]?.status else { return }
    lanes[backOff.lane]?.status = .idle
    makeReady(backOff.lane)
  }

  /// Puts an idle lane in line, or forgets it if it is empty.
  private mutating func makeReady(_ name: String) {
    guard lanes[name]?.status == .idle else { return }
    guard let first = lanes[name]?.waiting.first else {
      lanes[name] = nil
      failing.remove(name)
      return
    }
    if undurable.contains(first) { return }
    lanes[name]?.status = .ready
    ready.append(name)
  }
}
