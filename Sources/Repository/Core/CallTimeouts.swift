/// The timeouts of the calls whose mutations another repository sends.
///
/// The other repository may be suspended, or may wait for something that it doesn't report, such as its network. So a
/// call waits for its result for a limited time.
struct CallTimeouts {
  /// The time for which a call waits.
  private static var timeout: Duration { .seconds(10) }

  private var calls = FIFO<(id: MutationID, deadline: Duration)>()

  /// The time at which the first call has waited long enough.
  var deadline: Duration? { calls.first?.deadline }

  /// Starts the timeout of a call.
  mutating func add(_ id: MutationID, at now: Duration) {
    calls.append((id, now + Self.timeout))
  }

  /// Forgets the calls whose mutations meet a condition, because this repository sends these mutations now.
  mutating func removeAll(where isSentHere: (MutationID) -> Bool) {
    calls.removeAll { isSentHere($0.id) }
  }

  /// Removes the calls whose timeout has passed, and returns the ids of their mutations.
  mutating func removeExpired(at now: Duration) -> [MutationID] {
    var expired: [MutationID] = []
    while let first = calls.first, first.deadline <= now {
      expired.append(first.id)
      _ = calls.removeFirst()
    }
    return expired
  }
}
