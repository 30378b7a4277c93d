/// Notices that the server can't be reached, so that one attempt at a time shows when it can be reached again.
///
/// Otherwise each of possibly thousands of lanes would repeat its own attempt, although all of them fail for the same
/// reason.
struct Outage {
  /// The number of lanes whose attempts have to fail in a row.
  private let laneCount: Int
  /// The lanes whose attempts have failed since the server has answered.
  private var failedLanes: Set<LaneID> = []
  /// The number of attempts that have failed since the outage began.
  private(set) var failures = 0
  /// The time of the next attempt; `nil` if there is no outage.
  private(set) var nextAttempt: Duration?

  init(laneCount: Int) {
    self.laneCount = laneCount
  }

  var isActive: Bool { nextAttempt != nil }

  /// Records that an attempt got no answer, or that the server couldn't make the change at the moment.
  ///
  /// - Parameters:
  ///   - laneID: The lane of the attempt.
  ///   - deadline: The time of its next attempt.
  /// - Returns: Whether the outage begins.
  mutating func recordFailure(of laneID: LaneID, until deadline: Duration) -> Bool {
    if isActive {
      failures += 1
      nextAttempt = deadline
      return false
    }
    failedLanes.insert(laneID)
    guard failedLanes.count == laneCount else { return false }
    (failedLanes, failures, nextAttempt) = ([], 1, deadline)
    return true
  }

  /// Records that the server has answered.
  mutating func end() {
    self = Outage(laneCount: laneCount)
  }

  /// Lets the next attempt begin at once, because the server may be reached again.
  mutating func endDelay() {
    if isActive { nextAttempt = .zero }
  }

  /// Whether an attempt may begin, unless another one is in flight.
  func allowsAttempt(at now: Duration) -> Bool { nextAttempt.map { $0 <= now } ?? true }
}
