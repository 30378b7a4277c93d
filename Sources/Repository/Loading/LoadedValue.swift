public import Foundation

/// A value, its age, and whether the server has all of it.
public struct LoadedValue<Value> {
  /// The value.
  public var value: Value

  /// When the server's part of it was saved.
  public var savedAt: Date

  /// Whether changes that the server hasn't confirmed yet are applied to it.
  public var isPending: Bool

  /// Creates a loaded value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - savedAt: When the server's part of it was saved.
  ///   - isPending: Whether changes that the server hasn't confirmed yet are applied to it.
  public init(_ value: Value, savedAt: Date, isPending: Bool = false) {
    self.value = value
    self.savedAt = savedAt
    self.isPending = isPending
  }

  /// Returns the age of the value; `nil` if it was saved in the future.
  ///
  /// See ``Freshness/age(savedAt:now:)``.
  public func age(at now: Date) -> Duration? {
    Freshness.age(savedAt: savedAt, now: now)
  }
}

extension LoadedValue: Sendable where Value: Sendable {}
extension LoadedValue: Equatable where Value: Equatable {}
extension LoadedValue: Hashable where Value: Hashable {}
