/// How often to try again, and how long to wait before: exponential backoff with full jitter.
///
/// After the n-th failed attempt the wait is drawn evenly between nothing and ``ceiling(forAttempt:)``, so that clients
/// that failed together do not come back together.
public struct RetryPolicy: Hashable, Sendable {
  /// How many attempts are made in all, the first one included; `nil` for no limit.
  public let maximumAttempts: Int?

  /// The longest wait after the first attempt.
  public let base: Duration

  /// By how much the longest wait grows with each further attempt.
  public let multiplier: Double

  /// What no wait exceeds.
  public let cap: Duration

  /// Creates a policy.
  ///
  /// - Parameters:
  ///   - maximumAttempts: How many attempts are made in all; at least 1, or `nil` for no limit.
  ///   - base: The longest wait after the first attempt; not negative.
  ///   - multiplier: By how much the longest wait grows with each further attempt; at least 1.
  ///   - cap: What no wait exceeds; not negative.
  ///
  /// - Precondition: Each parameter is within its bounds.
  public init(
    maximumAttempts: Int? = nil, base: Duration = .seconds(1), multiplier: Double = 2, cap: Duration = .seconds(60)
  ) {
    precondition((maximumAttempts ?? 1) >= 1, "RetryPolicy: 'maximumAttempts' must be at least 1.")
    precondition(base >= .zero, "RetryPolicy: 'base' must not be negative, but is \(base).")
    precondition(multiplier >= 1, "RetryPolicy: 'multiplier' must be at least 1, but is \(multiplier).")
    precondition(cap >= .zero, "RetryPolicy: 'cap' must not be negative, but is \(cap).")
    self.maximumAttempts = maximumAttempts
    self.base = base
    self.multiplier = multiplier
    self.cap = cap
  }

  /// Whether an attempt may be made; the first is number 1.
  public func allows(attempt: Int) -> Bool {
    attempt <= maximumAttempts ?? .max
  }

  /// The longest wait after the failure of an attempt: `base` · `multiplier`^(attempt − 1), at most ``cap``.
  ///
  /// Exact to the nanosecond up to a hundred days; any number of attempts has an answer.
  ///
  /// - Parameter attempt: The number of the attempt that failed; the first is 1, and what is less counts as 1.
  public func ceiling(forAttempt attempt: Int) -> Duration {
    let longest = Self.nanoseconds(cap)
    let first = Self.nanoseconds(base)
    if first == 0 || first >= longest { return .nanoseconds(min(first, longest)) }
    var grown = Double(first)
    // Ends soon: either the wait reaches the cap, or it does not grow at all.
    for _ in 1..<max(attempt, 1) {
      let next = grown * multiplier
      if next >= Double(longest) { return .nanoseconds(longest) }
      if next == grown { break }
      grown = next
    }
    return .nanoseconds(Int64(grown.rounded()))
  }

  /// The wait after the failure of an attempt: any length from nothing to ``ceiling(forAttempt:)``, all equally likely.
  ///
  /// - Parameters:
  ///   - attempt: The number of the attempt that failed; the first is 1.
  ///   - generator: The source of randomness.
  public func delay(forAttempt attempt: Int, using generator: inout some RandomNumberGenerator) -> Duration {
    .nanoseconds(Int64.random(in: 0...Self.nanoseconds(ceiling(forAttempt: attempt)), using: &generator))
  }

  /// A duration in nanoseconds; 292 years for all that are longer.
  private static func nanoseconds(_ duration: Duration) -> Int64 {
    Int64(clamping: duration.attoseconds / 1_000_000_000)
  }
}
