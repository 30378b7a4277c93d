/// The number of attempts and the delays between them: exponential backoff with full jitter.
///
/// The delay after the n-th failed attempt is uniformly distributed between zero and ``ceiling(forAttempt:)``, so that
/// clients that failed at the same time don't retry at the same time.
public struct RetryPolicy: Hashable, Sendable {
  /// The total number of attempts, including the first, or `nil` for no limit.
  public let maximumAttempts: Int?

  /// The number of attempts in a row that the end of a process may interrupt, or `nil` for no limit.
  ///
  /// A mutation that ends the process whenever it is sent would do so after every launch. It is refused when this many
  /// attempts in a row were interrupted while no other mutation was in flight, so that it may have been the cause.
  /// Attempts that the system ends together with the process, for example because memory is short, count too. An app
  /// whose requests take so long that this happens several times in a row needs a higher limit.
  public let maximumInterruptedAttempts: Int?

  /// The longest delay after the first attempt.
  public let base: Duration

  /// The factor by which the longest delay grows with each further attempt.
  public let multiplier: Double

  /// The upper limit of every delay.
  public let cap: Duration

  /// Creates a policy.
  ///
  /// - Parameters:
  ///   - maximumAttempts: The total number of attempts, at least 1, or `nil` for no limit.
  ///   - maximumInterruptedAttempts: The number of attempts in a row that the end of a process may interrupt, at least
  ///     1, or `nil` for no limit.
  ///   - base: The longest delay after the first attempt; not negative.
  ///   - multiplier: The factor by which the longest delay grows with each further attempt, at least 1.
  ///   - cap: The upper limit of every delay; not negative.
  ///
  /// - Precondition: Each parameter is within its bounds.
  public init(
    maximumAttempts: Int? = nil, maximumInterruptedAttempts: Int? = 5, base: Duration = .seconds(1),
    multiplier: Double = 2, cap: Duration = .seconds(60)
  ) {
    precondition((maximumAttempts ?? 1) >= 1, "RetryPolicy: 'maximumAttempts' must be at least 1.")
    precondition(
      (maximumInterruptedAttempts ?? 1) >= 1, "RetryPolicy: 'maximumInterruptedAttempts' must be at least 1.")
    precondition(base >= .zero, "RetryPolicy: 'base' must not be negative, but is \(base).")
    precondition(multiplier >= 1, "RetryPolicy: 'multiplier' must be at least 1, but is \(multiplier).")
    precondition(cap >= .zero, "RetryPolicy: 'cap' must not be negative, but is \(cap).")
    self.maximumAttempts = maximumAttempts
    self.maximumInterruptedAttempts = maximumInterruptedAttempts
    self.base = base
    self.multiplier = multiplier
    self.cap = cap
  }

  /// Returns whether an attempt may be made; the first is number 1.
  public func allows(attempt: Int) -> Bool {
    attempt <= maximumAttempts ?? .max
  }

  /// The longest delay after a failed attempt: `base` · `multiplier`^(attempt − 1), at most ``cap``.
  ///
  /// The result doesn't overflow, however great the number of the attempt. If the multiplier is a whole number, a
  /// result of up to a hundred days is exact to the nanosecond.
  ///
  /// - Parameter attempt: The number of the failed attempt; the first is 1. Smaller numbers count as 1.
  public func ceiling(forAttempt attempt: Int) -> Duration {
    let capNanoseconds = Self.nanoseconds(cap)
    let baseNanoseconds = Self.nanoseconds(base)
    if baseNanoseconds == 0 || baseNanoseconds >= capNanoseconds {
      return .nanoseconds(min(baseNanoseconds, capNanoseconds))
    }
    var longestDelay = Double(baseNanoseconds)
    // The loop ends as soon as the delay reaches the cap, or at once if it doesn't grow.
    for _ in 1..<max(attempt, 1) {
      let nextDelay = longestDelay * multiplier
      if nextDelay >= Double(capNanoseconds) { return .nanoseconds(capNanoseconds) }
      if nextDelay == longestDelay { break }
      longestDelay = nextDelay
    }
    return .nanoseconds(Int64(longestDelay.rounded()))
  }

  /// Returns a delay after a failed attempt, uniformly distributed between zero and ``ceiling(forAttempt:)``.
  ///
  /// - Parameters:
  ///   - attempt: The number of the failed attempt; the first is 1.
  ///   - generator: The source of randomness.
  public func delay(forAttempt attempt: Int, using generator: inout some RandomNumberGenerator) -> Duration {
    .nanoseconds(Int64.random(in: 0...Self.nanoseconds(ceiling(forAttempt: attempt)), using: &generator))
  }

  /// Returns a duration in nanoseconds, limited to the greatest `Int64`, which is about 292 years.
  private static func nanoseconds(_ duration: Duration) -> Int64 {
    Int64(clamping: duration.attoseconds / 1_000_000_000)
  }
}
