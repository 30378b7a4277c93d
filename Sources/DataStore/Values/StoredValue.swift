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

  /// The size of all bytes that are stored of the value; `nil` if the store doesn't say.
  ///
  /// A save of a value in parts doesn't return it. A comparison ignores it.
  public let byteCount: Int?

  /// Creates a stored value, for a store of your own.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - savedAt: The time of the save.
  ///   - revision: The position of the change; 0 for a value that was stored before.
  ///   - tag: The commit that wrote the value.
  ///   - byteCount: The size of all bytes that are stored of the value; `nil` if it isn't known.
  public init(value: Value, savedAt: Date, revision: UInt64, tag: StoreTag, byteCount: Int? = nil) {
    self.value = value
    self.savedAt = savedAt
    self.revision = revision
    self.tag = tag
    self.byteCount = byteCount
  }
}

extension StoredValue: Equatable where Value: Equatable {
  /// Whether two are the same value of the same commit.
  public static func == (left: StoredValue, right: StoredValue) -> Bool {
    left.tag == right.tag && left.revision == right.revision && left.savedAt == right.savedAt
      && left.value == right.value
  }
}

extension StoredValue: Hashable where Value: Hashable {
  /// Hashes what a comparison compares, except the time.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(value)
    hasher.combine(tag)
    hasher.combine(revision)
  }
}
