internal import Multicast

/// A type-erased clock that measures the time since its creation.
///
/// A sleep has an absolute deadline, so one that begins late doesn't end late.
struct ElapsedClock: Sendable {
  /// Returns the time since the clock's creation.
  let elapsed: @Sendable () -> Duration

  /// Sleeps until a deadline, given as a time since the clock's creation.
  ///
  /// Throws `CancellationError` if the calling task is cancelled first.
  let sleep: @Sendable (_ until: Duration) async throws -> Void

  /// The latest deadline, about 100 years, because clocks count nanoseconds in 64 bits.
  ///
  /// A server or an app may ask for any delay.
  private static var maximumDeadline: Duration { .seconds(100 * 366 * 86_400) }

  /// Waits until a deadline, or until the calling task is cancelled.
  ///
  /// Cancellation isn't an error.
  func wait(until deadline: Duration, isolation: isolated (any Actor)? = #isolation) async {
    do { try await sleep(deadline) } catch {
      // Cancelled.
    }
  }

  /// Waits until a deadline, until an event, or until the calling task is cancelled.
  ///
  /// - Parameters:
  ///   - deadline: The deadline.
  ///   - event: A closure that waits for the event. It must return when its task is cancelled, because this function
  ///     returns only after the closure has returned.
  ///   - isolation: The actor of the caller.
  func wait(
    until deadline: Duration, or event: @escaping @Sendable () async -> Void,
    isolation: isolated (any Actor)? = #isolation
  ) async {
    await withTaskGroup { group in
      // This wait is cancelled when the event comes first, or with the calling task.
      group.addTask { await wait(until: deadline) }
      group.addTask(operation: event)
      await group.next()
      group.cancelAll()
    }
  }

  /// Waits until a deadline, until an element arrives, or until the calling task is cancelled.
  func wait(
    until deadline: Duration, or elements: MulticastSubscription<Void, Never>?,
    isolation: isolated (any Actor)? = #isolation
  ) async {
    guard let elements else { return await wait(until: deadline) }
    await wait(until: deadline) {
      for await _ in elements { return }
      // The subscription has ended, so no element will arrive.
      await wait(until: deadline)
    }
  }

  init(_ clock: some Clock<Duration>) {
    let start = clock.now
    elapsed = { start.duration(to: clock.now) }
    sleep = { try await clock.sleep(until: start.advanced(by: min($0, Self.maximumDeadline)), tolerance: nil) }
  }
}
