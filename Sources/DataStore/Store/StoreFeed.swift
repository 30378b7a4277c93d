public import Foundation
public import Multicast

/// The commits of a store, in order: each commit is one element, with all of its changes that the feed follows.
///
/// A feed follows whole collections and single keys. What was stored when the feed began to follow them is an element
/// too, ``StoreFeedElement/began(_:_:)``, at its place in the order, so no newer change can overtake it.
///
/// ```swift
/// let feed = await store.feed()
/// try await feed.follow(collection: "inbox", as: Message.self)
/// try await feed.follow(StoreKey<Settings>("settings"))
/// for await element in feed.elements {
///   switch element {
///   case .began(_, let changes): show(changes)
///   case .committed(let transaction): show(transaction.changes)
///   case .caughtUp: break
///   }
/// }
/// ```
///
/// A change of a commit of this store object arrives before the call that made it returns. No element is dropped,
/// however slow the subscriber is. The feed ends when it is released or its store is.
public protocol StoreFeed: Sendable {
  /// The elements, for one subscriber, which finish when the store is released.
  var elements: MulticastSubscription<StoreFeedElement, Never> { get }

  /// Begins to follow a key, unless the feed follows it already.
  ///
  /// The stored value, or its absence, is an element of the feed before the call returns.
  ///
  /// - Throws: The errors of ``KeyValueStore/changes(of:)``, except that a value that can't be used is an element.
  /// - Complexity: O(1), plus reading the value.
  func follow<Value>(_ key: StoreKey<Value>) async throws(StoreError)

  /// Begins to follow all keys of a collection, unless the feed follows it already.
  ///
  /// The stored values are one element of the feed before the call returns.
  ///
  /// - Throws: The errors of ``KeyValueStore/observe(collection:as:)``.
  /// - Complexity: O(*n*) for the names in the store, plus reading the values of the collection.
  func follow<Value: Codable & Sendable>(collection: String, as type: Value.Type) async throws(StoreError)

  /// Ends to follow a key or a collection. Elements that were sent before stay in the subscription.
  func endFollowing(_ part: StoreFeedPart) async

  /// Waits until every commit that was made before this call, by any process, is among the elements, followed by
  /// ``StoreFeedElement/caughtUp``.
  ///
  /// When it returns, no earlier call of this store object whose outcome is unknown can still take effect.
  ///
  /// - Throws: ``StoreError/readFailed(_:)``, or another ``StoreError``, if the store can't be read. The element
  ///   ``StoreFeedElement/caughtUp`` then doesn't follow.
  /// - Complexity: The reading of the followed values that have changed. All of them are read if the store isn't
  ///   watching its medium, for example because it is suspended.
  func catchUp() async throws(StoreError)
}

/// What a ``StoreFeed`` follows.
public enum StoreFeedPart: Hashable, Sendable {
  /// A single key.
  case key(StoreKeyName)
  /// All keys of a collection.
  case collection(String)
}

/// An element of a ``StoreFeed``.
public enum StoreFeedElement: Sendable {
  /// The feed has begun to follow a part of the store, which has these values, each as a change.
  ///
  /// The values of a collection are in the order of ``StoreObservation/stored``, followed by what can't be used. If
  /// nothing is stored for a single key, there is no change.
  case began(StoreFeedPart, [StoreFeedChange])

  /// A commit has changed what the feed follows.
  ///
  /// A commit of the feed's store object that has changed nothing is an element, too, without changes, if the feed
  /// follows one of its keys.
  case committed(StoreTransaction)

  /// A call of ``StoreFeed/catchUp()`` has succeeded: every commit that was made before the call precedes this element.
  ///
  /// Each call sends one.
  case caughtUp
}

/// The changes of one commit, as far as a ``StoreFeed`` follows them.
///
/// Commits of other store objects that are noticed together may be joined, so that after each element, the followed
/// part is what the store held at one instant.
public struct StoreTransaction: Sendable {
  /// The changes, in the order of their batch.
  public let changes: [StoreFeedChange]

  /// The position of the last change in the order in which the store object sends changes; see ``StoredValue/revision``.
  public let revision: UInt64

  /// The tag of the commit, if the store object of the feed made it; see ``StoreBatch/init(tag:)``.
  ///
  /// It is `nil` for commits of other store objects, each of whose saves has the tag of its own commit.
  public let ownTag: StoreTag?

  /// Creates a transaction, for your own implementation of a feed.
  public init(changes: [StoreFeedChange], revision: UInt64, ownTag: StoreTag?) {
    self.changes = changes
    self.revision = revision
    self.ownTag = ownTag
  }
}

/// A change of one key in a ``StoreFeed``.
public enum StoreFeedChange: Sendable {
  /// A value was saved; ``stored(for:)`` returns it with its type.
  case saved(StoreKeyName, any AnyStoredValue)

  /// The value was removed.
  case removed(StoreKeyName, revision: UInt64)

  /// This program can't use the stored value, or the value was quarantined because its bytes are corrupt.
  ///
  /// - Parameters:
  ///   - schema: The schema of the value, if it is a future one.
  ///   - reason: The reason, as text.
  ///   - byteCount: The size of the stored bytes, if they could be read.
  case unusable(StoreKeyName, schema: Int?, reason: String, byteCount: Int?)

  /// The key that was changed.
  public var key: StoreKeyName {
    switch self {
    case .saved(let key, _), .removed(let key, _), .unusable(let key, _, _, _): key
    }
  }

  /// Returns the saved value; `nil` if it is that of another key or type, or if the change isn't a save.
  public func stored<Value>(for key: StoreKey<Value>) -> StoredValue<Value>? {
    guard case .saved(key.keyName, let stored) = self else { return nil }
    return stored as? StoredValue<Value>
  }

  init<Value>(_ change: StoreChange<Value>) {
    switch change {
    case .saved(let key, let stored): self = .saved(key.keyName, stored)
    case .removed(let key, let revision): self = .removed(key.keyName, revision: revision)
    }
  }
}

/// A ``StoredValue`` of any type of value.
public protocol AnyStoredValue: Sendable {
  /// The time of the save, by the store's clock.
  var savedAt: Date { get }

  /// The position of the change; see ``StoredValue/revision``.
  var revision: UInt64 { get }

  /// The tag of the commit that wrote the value.
  var tag: StoreTag { get }

  /// The total size of the stored bytes of the value; `nil` if it is unknown.
  var byteCount: Int? { get }
}

extension StoredValue: AnyStoredValue {}
