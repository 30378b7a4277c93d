/// A pure state machine that decides when to watch for external changes, and which names to read again because of them.
struct WatchState {
  /// The names to read at a check.
  struct Plan: Equatable {
    /// The names that were reported or must be read again, from the oldest to the newest.
    ///
    /// Each name occurs once. If it was reported more than once, the last report decides its position.
    let names: [String]
    /// Whether to read all observed names too.
    let includesAllObserved: Bool
  }

  /// Whether the backend reports external changes.
  private(set) var isWatching = false

  /// Whether an observer has needed the watch.
  private(set) var isRequested = false

  /// The number of suspensions that haven't ended.
  private var suspensionCount = 0

  /// The names that were reported or marked as unread, and not read since, from the oldest to the newest.
  private var unread: [String] = []

  /// Whether any other name may have changed and was not read since.
  private var hasUnknownChanges = false

  /// Whether the store is suspended, so that it must not watch.
  var isSuspended: Bool { suspensionCount > 0 }

  /// Whether the watch must begin now.
  var mustBegin: Bool { isRequested && !isWatching && !isSuspended }

  /// Records that an observer needs the watch.
  mutating func request() {
    isRequested = true
  }

  /// Records that the watch has begun.
  ///
  /// Any name may have changed before the watch began, so the next plan includes all observed names.
  mutating func begin() {
    isWatching = true
    hasUnknownChanges = true
  }

  /// Records that the watch has broken.
  mutating func end() {
    isWatching = false
  }

  /// Records a suspension, which ends the watch.
  ///
  /// - Returns: Whether it is the only one, so that the backend must be closed now.
  mutating func suspend() -> Bool {
    suspensionCount += 1
    isWatching = false
    return suspensionCount == 1
  }

  /// Records the end of a suspension, if there is one.
  ///
  /// Any name may have changed during the suspension, so the next plan includes all observed names.
  ///
  /// - Returns: Whether it was the last one, so that the backend may stay open from now on.
  mutating func resume() -> Bool {
    guard isSuspended else { return false }
    suspensionCount -= 1
    hasUnknownChanges = true
    return !isSuspended
  }

  /// Records a report of the backend.
  mutating func report(_ changes: ExternalChanges) {
    switch changes {
    case .names(let names): unread += names
    case .unknown: hasUnknownChanges = true
    }
  }

  /// Returns the names to read now, and regards them as read.
  mutating func takePlan() -> Plan {
    defer { (unread, hasUnknownChanges) = ([], false) }
    var seen: Set<String> = []
    let newestFirst = unread.reversed().filter { seen.insert($0).inserted }
    return Plan(names: newestFirst.reversed(), includesAllObserved: hasUnknownChanges)
  }

  /// Records that a name must be read again with the next plan.
  mutating func markUnread(_ name: String) {
    unread.append(name)
  }

  /// Records that all names of a plan must be read again, because its reads failed or were discarded.
  mutating func markUnread(_ plan: Plan) {
    unread = plan.names + unread
    hasUnknownChanges = hasUnknownChanges || plan.includesAllObserved
  }
}
