/// Decides which mutation is sent next, and which have to wait.
///
/// Each ordering key has a lane. Only the first mutation of a lane is sent, and the next one when it has left. Lanes that
/// may send stand in line for a free place in the order they became ready, so a stuck lane delays no other.
///
/// A pure state machine. Times are measured from the creation of the repository.
///
/// - Complexity: O(1) amortised for each function, plus O(log *n*) for *n* lanes that back off; ``remove(_:lane:)`` and
///   ``waiting(in:)`` are O(*m*) for the *m* mutations of the lane, ``retryNow()`` and ``signedIn(userID:)`` O(*n*) for all
///   lanes.
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
    case inFlight
    /// Until a deadline; the number distinguishes this wait from earlier ones, whose deadlines may be still to come.
    case backingOff(number: UInt64, isServerDelay: Bool)
    case needsSignIn
  }

  private struct Lane {
    let userID: String?
    var status = Status.idle
    /// In order, without the one that is in flight.
    var waiting = FIFO<MutationID>()
    /// Failed attempts since the last success or ``MutationLanes/retryNow()``.
    var failures = 0
  }

  private struct BackOff {
    let lane: String
    let number: UInt64
  }

  private let maximumInFlight: Int
  /// The mutations that aren't durable yet: they have their place in their lane, and block it.
  private var undurable: Set<MutationID> = []
  private var inFlightCount = 0
  /// The users who have to sign in again.
  private(set) var signedOutUsers: Set<String?> = []
  private var lanes: [String: Lane] = [:]
  /// May name lanes that are no longer ready.
  private var ready = FIFO<String>()
  /// May hold waits that are over.
  private var deadlines = DeadlineHeap<BackOff>()
  private var lastBackOff: UInt64 = 0

  init(maximumInFlight: Int) {
    self.maximumInFlight = maximumInFlight
  }

  /// Adds a mutation behind the others of its lane.
  ///
  /// - Parameter isDurable: Whether it may be sent. Otherwise it has its place, and ``makeDurable(_:lane:)`` follows.
  mutating func append(_ id: MutationID, lane name: String, userID: String?, isDurable: Bool = true) {
    if !isDurable { undurable.insert(id) }
    lanes[name, default: Lane(userID: userID)].waiting.append(id)
    makeReady(name)
  }

  /// Lets a mutation not be sent, nor those behind it, until ``makeDurable(_:lane:)``.
  mutating func hold(_ id: MutationID, lane name: String) {
    undurable.insert(id)
  }

  /// Lets a mutation be sent.
  mutating func makeDurable(_ id: MutationID, lane name: String) {
    undurable.remove(id)
    makeReady(name)
  }

  /// Whether a mutation that is added now would be sent at once.
  func isFree(_ name: String) -> Bool { lanes[name] == nil && inFlightCount < maximumInFlight }

  /// Whether the lane's mutations wait for something other than their turn.
  func isHeldUp(_ name: String) -> Bool {
    guard let lane = lanes[name] else { return false }
    switch lane.status {
    case .backingOff, .needsSignIn: return true
    case .idle, .ready: return signedOutUsers.contains(lane.userID)
    case .inFlight: return false
    }
  }

  /// The lanes of a user, in no order.
  func lanes(of userID: String?) -> [String] { lanes.filter { $0.value.userID == userID }.map(\.key) }

  /// The mutations of a lane that aren't in flight, in order.
  func waiting(in name: String) -> [MutationID] { lanes[name]?.waiting.elements ?? [] }

  /// The first mutations of a lane behind the one that is in flight, in order.
  func upcoming(in name: String, count: Int) -> [MutationID] { lanes[name]?.waiting.first(count) ?? [] }

  /// What to do now.
  mutating func next(at now: Duration) -> Step {
    while let first = deadlines.first, first.deadline <= now {
      _ = deadlines.removeFirst()
      endBackOff(first.element)
    }
    guard inFlightCount < maximumInFlight else { return .wait(until: nil) }
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
      sending.status = .inFlight
      lanes[name] = sending
      inFlightCount += 1
      return .send(id, lane: name)
    }
    return .wait(until: deadlines.first?.deadline)
  }

  /// The mutation in flight has left its lane: the next one follows.
  mutating func complete(lane name: String) {
    guard lanes[name]?.status == .inFlight else { return }
    inFlightCount -= 1
    lanes[name]?.status = .idle
    lanes[name]?.failures = 0
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
    guard lanes[name]?.status == .inFlight else { return }
    inFlightCount -= 1
    lastBackOff += 1
    lanes[name]?.waiting.prepend(id)
    lanes[name]?.failures += 1
    lanes[name]?.status = .backingOff(number: lastBackOff, isServerDelay: isServerDelay)
    deadlines.insert(BackOff(lane: name, number: lastBackOff), deadline: deadline)
  }

  /// The attempt was broken off without counting: the mutation is first in its lane again.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - name: Its lane.
  ///   - needsSignIn: Whether all lanes of the user wait for new credentials.
  mutating func release(_ id: MutationID, lane name: String, needsSignIn: Bool) {
    guard let lane = lanes[name], lane.status == .inFlight else { return }
    inFlightCount -= 1
    lanes[name]?.waiting.prepend(id)
    lanes[name]?.status = needsSignIn ? .needsSignIn : .idle
    if needsSignIn { signedOutUsers.insert(lane.userID) } else { makeReady(name) }
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

  /// Ends all waits, except those that a server named, and starts the backoff anew.
  mutating func retryNow() {
    let items = deadlines.items
    deadlines.removeAll()
    for item in items {
      if case .backingOff(item.element.number, isServerDelay: true) = lanes[item.element.lane]?.status {
        deadlines.insert(item.element, deadline: item.deadline)
      } else {
        endBackOff(item.element)
      }
    }
    for name in lanes.keys { lanes[name]?.failures = 0 }
  }

  /// Sends the mutations of a user again, whose credentials have changed.
  mutating func signedIn(userID: String?) {
    signedOutUsers.remove(userID)
    for name in lanes(of: userID).sorted() where lanes[name]?.status == .needsSignIn {
      lanes[name]?.status = .idle
      makeReady(name)
    }
  }

  private mutating func endBackOff(_ backOff: BackOff) {
    guard case .backingOff(backOff.number, _) = lanes[backOff.lane]?.status else { return }
    lanes[backOff.lane]?.status = .idle
    makeReady(backOff.lane)
  }

  /// Puts an idle lane in line, or forgets it if it is empty.
  private mutating func makeReady(_ name: String) {
    guard lanes[name]?.status == .idle else { return }
    guard let first = lanes[name]?.waiting.first else {
      lanes[name] = nil
      return
    }
    if undurable.contains(first) { return }
    lanes[name]?.status = .ready
    ready.append(name)
  }
}
