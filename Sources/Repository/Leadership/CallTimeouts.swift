/// The timeouts of the calls whose mutations another repository sends.
///
/// The other repository may be suspended, or may wait for something that it doesn't report, such as its network. So a
/// call waits for its result for a limited time.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class CallTimeouts {
  /// The time for which a call waits.
  private static var timeout: Duration { .seconds(10) }

  private let clock: ElapsedClock
  private let alarm: Alarm
  private var calls = FIFO<(id: MutationID, deadline: Duration)>()

  init(_ clock: ElapsedClock, _ tasks: OwnedTasks) {
    self.clock = clock
    alarm = Alarm(clock, tasks)
  }

  /// Starts the timeout of a call.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - ring: The action when the next timeout has passed. It must call ``removeExpired(at:ring:)``.
  func add(_ id: MutationID, ring: @escaping @Sendable (_ deadline: Duration) async -> Void) {
    calls.append((id, clock.elapsed() + Self.timeout))
    setAlarm(ring)
  }

  /// Forgets the calls whose mutations meet a condition, because this repository sends these mutations now.
  func removeAll(
    where isSentHere: (MutationID) -> Bool, ring: @escaping @Sendable (_ deadline: Duration) async -> Void
  ) {
    calls.removeAll { isSentHere($0.id) }
    setAlarm(ring)
  }

  /// Removes the calls whose timeout has passed, and returns the ids of their mutations.
  ///
  /// - Parameters:
  ///   - deadline: The deadline that `ring` was called with. It only identifies the alarm: the present time decides
  ///     which calls are removed.
  ///   - ring: The action when the next timeout has passed, as in ``add(_:ring:)``.
  func removeExpired(
    at deadline: Duration, ring: @escaping @Sendable (_ deadline: Duration) async -> Void
  ) -> [MutationID] {
    alarm.clear(deadline)
    var expired: [MutationID] = []
    while let first = calls.first, first.deadline <= clock.elapsed() {
      expired.append(first.id)
      _ = calls.removeFirst()
    }
    setAlarm(ring)
    return expired
  }

  private func setAlarm(_ ring: @escaping @Sendable (_ deadline: Duration) async -> Void) {
    alarm.set(calls.first?.deadline, ring: ring)
  }
}
