internal import Multicast

/// A clock of any kind, seen as the time since it was taken up.
///
/// Sleeps have an absolute end, so none lasts longer because it began late.
struct ElapsedClock: Sendable {
  /// How much time has passed.
  let elapsed: @Sendable () -> Duration

  /// Sleeps until so much time has passed.
  ///
  /// Throws `CancellationError` if the calling task is cancelled first.
  let sleep: @Sendable (_ until: Duration) async throws -> Void

  /// Waits until so much time has passed, or until the calling task is cancelled, which is no failure of a wait.
  func wait(until deadline: Duration, isolation: isolated (any Actor)? = #isolation) async {
    do { try await sleep(deadline) } catch {
      // Cancelled.
    }
  }

  /// Waits until so much time has passed, until something else has happened, or until the calling task is cancelled.
  func wait(
    until deadline: Duration, or event: @escaping @Sendable () async -> Void,
    isolation: isolated (any Actor)? = #isolation
  ) async {
    await withTaskGroup { group in
      // Cancelled when the other one is first, or with the calling task.
      group.addTask { await wait(until: deadline) }
      group.addTask(operation: event)
      await group.next()
      group.cancelAll()
    }
  }

  /// Waits until so much time has passed, until there is an element, or until the calling task is cancelled.
  func wait(
    until deadline: Duration, or elements: MulticastSubscription<Void, Never>?,
    isolation: isolated (any Actor)? = #isolation
  ) async {
    guard let elements else { return await wait(until: deadline) }
    await wait(until: deadline) {
      for await _ in elements { return }
      // No element comes any more.
      await wait(until: deadline)
    }
  }

  init(_ clock: some Clock<Duration>) {
    let start = clock.now
    elapsed = { start.duration(to: clock.now) }
    sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
  }
}
