internal import Multicast

/// The delays before further attempts, which ``endWaits()`` cuts short.
///
/// Used in the isolation of one object, because its random numbers come from a generator of the app.
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

  /// Ends all waits.
  func endWaits() {
    ends.send(())
  }
}
