public import Foundation

/// How long a stored value is good enough not to ask for a newer one.
///
/// Works on the time at which a value was saved, such as `StoredValue.savedAt`, so it means the same after a relaunch.
public struct Freshness: Hashable, Sendable {
  /// The age at which a value becomes stale.
  public let timeToLive: Duration

  /// Creates a rule.
  ///
  /// - Parameter timeToLive: The age at which a value becomes stale. Zero, or less, makes every value stale.
  public init(timeToLive: Duration) {
    self.timeToLive = timeToLive
  }

  /// Whether a value is younger than ``timeToLive``.
  ///
  /// A value that was saved in the future is stale: a clock was set back, so the age isn't known.
  public func isFresh(savedAt: Date, now: Date) -> Bool {
    Self.age(savedAt: savedAt, now: now).map { $0 < timeToLive } ?? false
  }

  /// Returns the age of a value; `nil` if it was saved in the future, or so long ago that no clock can have said so.
  public static func age(savedAt: Date, now: Date) -> Duration? {
    let seconds = now.timeIntervalSince(savedAt)
    // Stored times are only numbers, and the conversion to a duration stops the program at one that does not fit.
    guard seconds >= 0, seconds < 1e15 else { return nil }
    return .seconds(seconds)
  }
}
