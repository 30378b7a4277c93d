/// A commit that a store has made.
public struct StoreCommit: Hashable, Sendable {
  /// The position of the commit in the order in which the store object sends changes; see ``StoredValue/revision``.
  ///
  /// A commit that changed nothing, such as the removal of a key without a value, has the revision of the change before
  /// it.
  public let revision: UInt64

  /// The common tag of all values that the commit saved.
  public let tag: StoreTag

  /// Creates a commit, for your own implementation of a store.
  public init(revision: UInt64, tag: StoreTag) {
    self.revision = revision
    self.tag = tag
  }
}
