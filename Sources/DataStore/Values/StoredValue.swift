public import Foundation

/// A stored value, with the metadata that a store keeps with it.
public struct StoredValue<Value: Sendable>: Sendable {
  /// The value.
  public let value: Value

  /// The time of the save, by the store's clock.
  ///
  /// It is exactly the same after a relaunch.
  public let savedAt: Date

  /// The position of the change in the order in which the store object sends changes.
  ///
  /// The first commit of a store object that changes anything, or the first external change that the store object
  /// notices, has revision 1, and each later one has the next number. All keys share this order, and all changes of one
  /// commit have the same revision. The saves of an external commit share a revision if they are noticed together, but
  /// an external removal may have a revision of its own. A value that the store object has neither written nor noticed
  /// as a change has revision 0, such as one that was stored before the store object existed. A revision has no meaning
  /// for another store object; use ``tag`` to identify a commit across store objects.
  public let revision: UInt64

  /// The tag of the commit that wrote the value.
  public let tag: StoreTag

  /// The total size of the stored bytes of the value; `nil` if it is unknown.
  ///
  /// A store need not report it. It is unknown for a save that was never written, because a later save replaced it.
  /// Comparisons ignore the size.
  public let byteCount: Int?

  /// Creates a stored value, for your own implementation of a store.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - savedAt: The time of the save.
  ///   - revision: The position of the change; 0 for a value from before the store object existed.
  ///   - tag: The tag of the commit that wrote the value.
  ///   - byteCount: The total size of the stored bytes of the value; `nil` if it is unknown.
  public init(value: Value, savedAt: Date, revision: UInt64, tag: StoreTag, byteCount: Int? = nil) {
    self.value = value
    self.savedAt = savedAt
    self.revision = revision
    self.tag = tag
    self.byteCount = byteCount
  }
}

extension StoredValue: Equatable where Value: Equatable {
  /// Returns whether two stored values are equal in everything except ``byteCount``.
  public static func == (left: StoredValue, right: StoredValue) -> Bool {
    left.tag == right.tag && left.revision == right.revision && left.savedAt == right.savedAt
      && left.value == right.value
  }
}

extension StoredValue: Hashable where Value: Hashable {
  /// Hashes the value, the tag and the revision.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(value)
    hasher.combine(tag)
    hasher.combine(revision)
  }
}
