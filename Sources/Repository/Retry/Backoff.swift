internal import Multicast

/// Determines the delay before each further attempt, and waits until it has passed or ``endWaits()`` is called.
///
/// Used in the isolation of one actor, because each random number changes the generator.
final class Backoff {
  private let policy: RetryPolicy
  private let clock: ElapsedClock
  private let endSignals = MulticastRelay<Void>(buffering: .unbounded)
  private var generator: AnyRandomNumberGenerator

  init(_ policy: RetryPolicy, clock: ElapsedClock, random: any RandomNumberGenerator & Sendable) {
    self.policy = policy
    self.clock = clock
    generator = AnyRandomNumberGenerator(random)
  }

  /// Returns a random delay for the wait after a failed attempt.
  ///
  /// - Parameter attempt: The number of the failed attempt; the first is 1.
  func delay(forAttempt attempt: Int) -> Duration {
    policy.delay(forAttempt: attempt, using: &generator)
  }

  /// Waits until the delay after a failed attempt has passed, or ``endWaits()`` is called.
  ///
  /// Cancellation ends the wait.
  func wait(
    afterAttempt attempt: Int, atMost maximum: Duration? = nil, isolation: isolated (any Actor)? = #isolation
  ) async {
    let delay = delay(forAttempt: attempt)
    let deadline = clock.elapsed() + (maximum.map { min($0, delay) } ?? delay)
    await clock.wait(until: deadline, or: endSignals.stream.subscribe())
  }

  /// Ends all calls of ``wait(afterAttempt:atMost:isolation:)``.
  ///
  /// Has no effect on a caller that waits for a delay returned by ``delay(forAttempt:)``.
  func endWaits() {
    endSignals.send(())
  }
}
