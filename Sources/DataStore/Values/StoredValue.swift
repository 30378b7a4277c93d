public import Foundation

/// A value as a store holds it.
public struct StoredValue<Value: Sendable>: Sendable {
  /// The value.
  public let value: Value

  /// The time of the save, by the store's clock.
  ///
  /// The same after a relaunch, to the last bit.
  public let savedAt: Date

  /// The position of the change in the order in which this store object sends changes.
  ///
  /// The first commit of a store object, or the first external change that it notices, is 1; each later one is one more.
  /// All keys share the order, and all changes of one commit have the same revision. A value that was stored before the
  /// store object existed has revision 0. A revision means nothing to another store object; see ``tag`` for an identity
  /// that does.
  public let revision: UInt64

  /// The commit that wrote the value.
  public let tag: StoreTag

  /// Creates a stored value, for a store of your own.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - savedAt: The time of the save.
  ///   - revision: The position of the change; 0 for a value that was stored before.
  ///   - tag: The commit that wrote the value.
  public init(value: Value, savedAt: Date, revision: UInt64, tag: StoreTag) {
    self.value = value
    self.savedAt = savedAt
    self.revision = revision
    self.tag = tag
  }
}

extension StoredValue: Equatable where Value: Equatable {}
extension StoredValue: Hashable where Value: Hashable {}
