/// What is to be read again because of external changes: a pure state machine.
struct WatchState {
  /// The names to read at a check.
  struct Plan: Equatable {
    /// Names that were reported or could not be read before, each once, in the order of their last changes.
    let names: [String]
    /// Whether all observed names are to be read, too.
    let includesAllObserved: Bool
  }

  /// Whether the backend reports external changes.
  private(set) var isWatching = false

  /// Names that were reported and not read since, in order.
  private var missed: [String] = []

  /// Whether anything may have changed that was not read since.
  private var missedAny = false

  /// Records that the watch began.
  ///
  /// What changed before it is unknown.
  mutating func begin() {
    isWatching = true
    missedAny = true
  }

  /// Records that the watch broke.
  mutating func end() {
    isWatching = false
  }

  /// Records what the backend reported.
  mutating func report(_ changes: ExternalChanges) {
    switch changes {
    case .names(let names): missed += names
    case .unknown: missedAny = true
    }
  }

  /// Returns what is to be read now, and takes it for read.
  mutating func takePlan() -> Plan {
    defer { (missed, missedAny) = ([], false) }
    var seen: Set<String> = []
    let names = missed.reversed().filter { seen.insert($0).inserted }
    return Plan(names: names.reversed(), includesAllObserved: missedAny)
  }

  /// Records that a name could not be read.
  mutating func miss(_ name: String) {
    missed.append(name)
  }

  /// Records that nothing of a plan could be read.
  mutating func miss(_ plan: Plan) {
    missed = plan.names + missed
    missedAny = missedAny || plan.includesAllObserved
  }
}
