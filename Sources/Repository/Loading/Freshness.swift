public import Foundation

/// A rule for how long a stored value is used before a newer one is fetched.
///
/// The rule uses the time at which a value was saved, such as `StoredValue.savedAt`, so it has the same meaning after a
/// relaunch.
public struct Freshness: Hashable, Sendable {
  /// The age at which a value becomes stale.
  public let timeToLive: Duration

  /// Creates a rule.
  ///
  /// - Parameter timeToLive: The age at which a value becomes stale. If it is zero or negative, every value is stale.
  public init(timeToLive: Duration) {
    self.timeToLive = timeToLive
  }

  /// Returns whether a value is younger than ``timeToLive``.
  ///
  /// A value that was saved in the future is stale: a clock was set back, so the value's age isn't known.
  public func isFresh(savedAt: Date, now: Date) -> Bool {
    Self.age(savedAt: savedAt, now: now).map { $0 < timeToLive } ?? false
  }

  /// Returns the age of a value, or `nil` if it was saved in the future or implausibly long ago.
  public static func age(savedAt: Date, now: Date) -> Duration? {
    let seconds = now.timeIntervalSince(savedAt)
    // A stored time may be any number, and the conversion to a duration traps if the number doesn't fit.
    guard seconds >= 0, seconds < 1e15 else { return nil }
    return .seconds(seconds)
  }
}
