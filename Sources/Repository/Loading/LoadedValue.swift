public import Foundation

/// A value with the time at which it was saved, and whether it includes unconfirmed changes.
public struct LoadedValue<Value> {
  /// The value.
  public var value: Value

  /// The time at which the value was saved, disregarding its unconfirmed changes.
  public var savedAt: Date

  /// Whether the value includes changes that the server hasn't confirmed yet.
  public var isPending: Bool

  /// Creates a loaded value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - savedAt: The time at which the value was saved, disregarding its unconfirmed changes.
  ///   - isPending: Whether the value includes changes that the server hasn't confirmed yet.
  public init(_ value: Value, savedAt: Date, isPending: Bool = false) {
    self.value = value
    self.savedAt = savedAt
    self.isPending = isPending
  }

  /// Returns the age of the value; `nil` if it was saved in the future or implausibly long ago.
  ///
  /// See ``Freshness/age(savedAt:now:)``.
  public func age(at now: Date) -> Duration? {
    Freshness.age(savedAt: savedAt, now: now)
  }
}

extension LoadedValue: Sendable where Value: Sendable {}
extension LoadedValue: Equatable where Value: Equatable {}
extension LoadedValue: Hashable where Value: Hashable {}
