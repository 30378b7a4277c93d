public import Foundation

/// A value as a store holds it.
public struct StoredValue<Value: Sendable>: Sendable {
  /// The value.
  public let value: Value

  /// When it was saved, by the store's clock.
  ///
  /// The same after a relaunch, to the last bit.
  public let savedAt: Date

  /// Which of the store's changes this was: 1 for the first since the store was created, and one more for each.
  ///
  /// One count for all keys, so that all changes have one order. 0 for a value that was there before.
  public let revision: UInt64

  /// Creates a stored value, for a store of your own.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - savedAt: When it was saved.
  ///   - revision: Which of the store's changes this was; 0 for a value that was there before.
  public init(value: Value, savedAt: Date, revision: UInt64) {
    self.value = value
    self.savedAt = savedAt
    self.revision = revision
  }
}

extension StoredValue: Equatable where Value: Equatable {}
extension StoredValue: Hashable where Value: Hashable {}
