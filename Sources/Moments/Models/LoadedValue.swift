public import Foundation
internal import Repository

/// A value with the time from which its age counts, and whether it includes unconfirmed changes.
public struct LoadedValue<Value> {
  /// The value.
  public var value: Value

  /// The time from which the age of the value counts, disregarding its unconfirmed changes.
  ///
  /// For a value from a repository, it is `RepositoryState.fetchedAt`: the time at which the value was fetched or, if
  /// that isn't known, last saved.
  public var savedAt: Date

  /// Whether the value includes changes that the server hasn't confirmed yet.
  public var isPending: Bool

  /// Creates a loaded value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - savedAt: The time from which the age of the value counts, disregarding its unconfirmed changes.
  ///   - isPending: Whether the value includes changes that the server hasn't confirmed yet.
  public init(_ value: Value, savedAt: Date, isPending: Bool = false) {
    self.value = value
    self.savedAt = savedAt
    self.isPending = isPending
  }

  /// Returns the age of the value; `nil` if ``savedAt`` is in the future or implausibly long ago.
  ///
  /// See `Freshness.age(savedAt:now:)`.
  public func age(at now: Date) -> Duration? {
    Freshness.age(savedAt: savedAt, now: now)
  }
}

extension LoadedValue: Sendable where Value: Sendable {}
extension LoadedValue: Equatable where Value: Equatable {}
extension LoadedValue: Hashable where Value: Hashable {}
