public import Foundation

/// A commit that a store has made.
public struct StoreCommit: Hashable, Sendable {
  /// The position of the commit in the order in which the store object sends changes; see ``StoredValue/revision``.
  ///
  /// A commit that changed nothing, such as the removal of a key without a value, has the revision of the change before
  /// it.
  public let revision: UInt64

  /// The common tag of all values that the commit saved.
  public let tag: StoreTag

  /// The time of the commit, by the store's clock.
  ///
  /// It is ``StoredValue/savedAt`` of all values that the commit saved.
  public let savedAt: Date

  /// The total sizes of the stored bytes of the values that the commit saved.
  ///
  /// A store need not report them. The size of a save that was never written, because a later save replaced it, is
  /// unknown.
  public let byteCounts: [StoreKeyName: Int]

  /// Creates a commit, for your own implementation of a store.
  ///
  /// - Parameters:
  ///   - revision: The position of the commit.
  ///   - tag: The tag of the values that the commit saved.
  ///   - savedAt: The time of the commit.
  ///   - byteCounts: The sizes of the values that the commit saved, as far as they are known.
  public init(revision: UInt64, tag: StoreTag, savedAt: Date, byteCounts: [StoreKeyName: Int] = [:]) {
    self.revision = revision
    self.tag = tag
    self.savedAt = savedAt
    self.byteCounts = byteCounts
  }
}
