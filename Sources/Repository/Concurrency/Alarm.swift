/// A timer with at most one deadline, which a new deadline replaces.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class Alarm {
  private let clock: ElapsedClock
  private let tasks: OwnedTasks
  private var pending: (deadline: Duration, cancel: @Sendable () -> Void)?

  init(_ clock: ElapsedClock, _ tasks: OwnedTasks) {
    (self.clock, self.tasks) = (clock, tasks)
  }

  /// Replaces the deadline and its action, unless the new deadline equals the present one.
  ///
  /// - Parameters:
  ///   - deadline: The new deadline, or `nil` for none.
  ///   - ring: The action at the deadline. It must call ``clear(_:)`` first.
  func set(_ deadline: Duration?, ring: @escaping @Sendable (_ deadline: Duration) async -> Void) {
    if pending?.deadline == deadline { return }
    pending?.cancel()
    pending = nil
    guard let deadline else { return }
    let cancel = tasks.start { [clock] in
      // Throws if `set` replaces the deadline, or if all tasks are cancelled.
      do { try await clock.sleep(deadline) } catch { return }
      await ring(deadline)
    }
    pending = (deadline, cancel)
  }

  /// Clears a deadline that has passed, unless another one has replaced it.
  func clear(_ deadline: Duration) {
    if pending?.deadline == deadline { pending = nil }
  }
}
