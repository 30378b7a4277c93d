internal import Multicast

/// The waits before another attempt, which ``endWaits()`` cuts short.
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

  /// Returns how long to wait after an attempt.
  ///
  /// - Parameter attempt: The number of the attempt that failed; the first is 1.
  func delay(forAttempt attempt: Int) -> Duration {
    policy.delay(forAttempt: attempt, using: &random)
  }

  /// Waits after an attempt, until ``endWaits()`` at most.
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
