/// One wait of an object for a time, which another one replaces.
///
/// Used in the isolation of one object.
final class Alarm {
  private let clock: ElapsedClock
  private let tasks: OwnedTasks
  private var pending: (deadline: Duration, cancel: @Sendable () -> Void)?

  init(_ clock: ElapsedClock, _ tasks: OwnedTasks) {
    (self.clock, self.tasks) = (clock, tasks)
  }

  /// Waits for a time in the place of an earlier one; `nil` for none.
  ///
  /// - Parameters:
  ///   - deadline: The time.
  ///   - ring: What to do then. It calls ``silence(_:)`` first.
  func set(_ deadline: Duration?, ring: @escaping @Sendable (_ deadline: Duration) async -> Void) {
    if pending?.deadline == deadline { return }
    pending?.cancel()
    pending = nil
    guard let deadline else { return }
    let cancel = tasks.start { [clock] in
      // Cancelled by another time, or when the owner of the tasks is released.
      do { try await clock.sleep(deadline) } catch { return }
      await ring(deadline)
    }
    pending = (deadline, cancel)
  }

  /// Ends the wait for a time that has come.
  func silence(_ deadline: Duration) {
    if pending?.deadline == deadline { pending = nil }
  }
}
