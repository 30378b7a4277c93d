/// The calls of mutations that another repository sends, which don't wait for its answer for ever.
///
/// The other one may be stopped, or wait for something that it doesn't report, such as its network.
///
/// Used in the isolation of one object.
final class UnansweredCalls {
  /// How long a call waits.
  private static var longestWait: Duration { .seconds(10) }

  private let clock: ElapsedClock
  private let alarm: Alarm
  private var calls = FIFO<(id: MutationID, deadline: Duration)>()

  init(_ clock: ElapsedClock, _ tasks: OwnedTasks) {
    self.clock = clock
    alarm = Alarm(clock, tasks)
  }

  /// Adds a call.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - ring: What to do when calls have waited for long enough. It calls ``takeDue(at:)``.
  func add(_ id: MutationID, ring: @escaping @Sendable (_ deadline: Duration) async -> Void) {
    calls.append((id, clock.elapsed() + Self.longestWait))
    setAlarm(ring)
  }

  /// Forgets all calls, because this repository answers them now.
  func removeAll() {
    calls = FIFO()
    alarm.set(nil) { _ in }
  }

  /// Returns the mutations whose calls have waited for long enough, and forgets them.
  func takeDue(at deadline: Duration, ring: @escaping @Sendable (_ deadline: Duration) async -> Void) -> [MutationID] {
    alarm.silence(deadline)
    var due: [MutationID] = []
    while let first = calls.first, first.deadline <= clock.elapsed() {
      due.append(first.id)
      _ = calls.removeFirst()
    }
    setAlarm(ring)
    return due
  }

  private func setAlarm(_ ring: @escaping @Sendable (_ deadline: Duration) async -> Void) {
    alarm.set(calls.first?.deadline, ring: ring)
  }
}
