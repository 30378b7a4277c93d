internal import Multicast

/// Determines the delays before further attempts, and waits for them until ``endWaits()``.
///
/// Used in the isolation of one object, because each random number changes the generator.
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

  /// Waits after a failed attempt, or until ``endWaits()`` if that is called first.
  ///
  /// Cancellation ends the wait.
  func wait(afterAttempt attempt: Int, isolation: isolated (any Actor)? = #isolation) async {
    let deadline = clock.elapsed() + delay(forAttempt: attempt)
    await clock.wait(until: deadline, or: ends.stream.subscribe())
  }

  /// Ends all calls of ``wait(afterAttempt:isolation:)``, but no delay that ``delay(forAttempt:)`` returned.
  func endWaits() {
    ends.send(())
  }
}
