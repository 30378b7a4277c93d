internal import Multicast

/// Determines the delay before each further attempt, and waits until it has passed or ``endWaits()`` is called.
///
/// Used in the isolation of one actor, because each random number changes the generator.
final class Backoff {
  private let policy: RetryPolicy
  private let clock: ElapsedClock
  private let ends = MulticastRelay<Void>(buffering: .unbounded)
  private var random: AnyRandomNumberGenerator

  init(_ policy: RetryPolicy, clock: ElapsedClock, random: any RandomNumberGenerator & Sendable) {
    self.policy = policy
    self.clock = clock
    self.random = AnyRandomNumberGenerator(random)
  }

  /// Returns the delay after a failed attempt.
  ///
  /// - Parameter attempt: The number of the failed attempt; the first is 1.
  func delay(forAttempt attempt: Int) -> Duration {
    policy.delay(forAttempt: attempt, using: &random)
  }

  /// Waits until the delay after a failed attempt has passed, or ``endWaits()`` is called.
  ///
  /// Cancellation ends the wait.
  func wait(afterAttempt attempt: Int, isolation: isolated (any Actor)? = #isolation) async {
    let deadline = clock.elapsed() + delay(forAttempt: attempt)
    await clock.wait(until: deadline, or: ends.stream.subscribe())
  }

  /// Ends all calls of ``wait(afterAttempt:isolation:)``.
  ///
  /// Has no effect on a caller that waits for a delay returned by ``delay(forAttempt:)``.
  func endWaits() {
    ends.send(())
  }
}
