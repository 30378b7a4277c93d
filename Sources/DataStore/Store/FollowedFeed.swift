internal import Multicast

/// A ``StoreFeed`` as its store has it: the channel of its elements, and the changes that its next element will have.
///
/// Belongs to one ``BackedStore`` and is used only in the isolation of that store.
final class FollowedFeed {
  private let channel: UnownedChannel<StoreFeedElement>
  private var collected: [StoreFeedChange] = []

  private init(_ channel: UnownedChannel<StoreFeedElement>) {
    self.channel = channel
  }

  deinit {
    channel.finish()
  }

  /// Creates a feed and the subscription to its elements, which keeps the feed alive.
  ///
  /// - Parameter onRelease: Runs when the subscription is released, on any thread.
  static func make(
    onRelease: @escaping @Sendable () -> Void
  ) -> (feed: FollowedFeed, elements: MulticastSubscription<StoreFeedElement, Never>) {
    let (channel, stream) = UnownedChannel<StoreFeedElement>.makeStream(replay: 0, onRelease: onRelease)
    return (FollowedFeed(channel), stream.subscribe())
  }

  /// Whether the subscription to the elements still exists.
  var isReferenced: Bool { channel.isReferenced }

  /// Adds a change to the next element.
  ///
  /// - Returns: Whether it is the element's first change.
  func collect(_ change: StoreFeedChange) -> Bool {
    collected.append(change)
    return collected.count == 1
  }

  /// Sends the collected changes as one element.
  func sendCollected(revision: UInt64, ownTag: StoreTag?) {
    defer { collected = [] }
    channel.send(.committed(StoreTransaction(changes: collected, revision: revision, ownTag: ownTag)))
  }

  func send(_ element: StoreFeedElement) { channel.send(element) }
}

/// The feeds that follow one collection or keys of it.
struct TopicFeeds {
  private var ofCollection: [FollowedFeed] = []
  private var ofKeys: [String?: [FollowedFeed]] = [:]

  var isEmpty: Bool { ofCollection.isEmpty && ofKeys.isEmpty }

  var followsCollection: Bool { ofCollection.contains(where: \.isReferenced) }

  /// Whether any feed follows the collection or a key.
  var followsAnything: Bool { followsCollection || ofKeys.values.contains { $0.contains(where: \.isReferenced) } }

  /// The ids that feeds follow one by one, in no particular order.
  var followedIDs: [String?] { ofKeys.compactMap { $0.value.contains(where: \.isReferenced) ? .some($0.key) : nil } }

  func follows(_ id: String?) -> Bool { followsCollection || ofKeys[id]?.contains(where: \.isReferenced) ?? false }

  /// Returns the feeds that receive the changes of an id, each once.
  func feeds(of id: String?) -> [FollowedFeed] {
    let ofKey = (ofKeys[id] ?? []).filter { feed in !ofCollection.contains { $0 === feed } }
    return (ofCollection + ofKey).filter(\.isReferenced)
  }

  /// Adds a feed, unless it follows the part already.
  ///
  /// - Returns: Whether it was added.
  mutating func add(_ feed: FollowedFeed, to part: StoreFeedPart) -> Bool {
    removeReleased()
    switch part {
    case .collection:
      if ofCollection.contains(where: { $0 === feed }) { return false }
      ofCollection.append(feed)
    case .key(let key):
      if ofKeys[key.id]?.contains(where: { $0 === feed }) ?? false { return false }
      ofKeys[key.id, default: []].append(feed)
    }
    return true
  }

  mutating func remove(_ feed: FollowedFeed, from part: StoreFeedPart) {
    switch part {
    case .collection: ofCollection.removeAll { $0 === feed }
    case .key(let key):
      ofKeys[key.id]?.removeAll { $0 === feed }
      if ofKeys[key.id]?.isEmpty ?? false { ofKeys[key.id] = nil }
    }
  }

  /// Removes a feed that was released from everything that it followed.
  mutating func removeReleased() {
    ofCollection.removeAll { !$0.isReferenced }
    ofKeys = ofKeys.compactMapValues { feeds in
      let referenced = feeds.filter(\.isReferenced)
      return referenced.isEmpty ? nil : referenced
    }
  }
}

/// A feed of a ``BackedStore``, which doesn't keep the store alive.
final class BackedFeed<Backend: StoreBackend>: StoreFeed {
  let elements: MulticastSubscription<StoreFeedElement, Never>
  private let number: UInt64
  private weak let store: BackedStore<Backend>?

  init(_ number: UInt64, of store: BackedStore<Backend>, elements: MulticastSubscription<StoreFeedElement, Never>) {
    (self.number, self.store, self.elements) = (number, store, elements)
  }

  func follow<Value>(_ key: StoreKey<Value>) async throws(StoreError) { try await store?.follow(key, by: number) }

  func follow<Value: Codable & Sendable>(collection: String, as type: Value.Type) async throws(StoreError) {
    try await store?.follow(collection, as: type, by: number)
  }

  func endFollowing(_ part: StoreFeedPart) async { await store?.endFollowing(part, by: number) }

  func catchUp() async throws(StoreError) { try await store?.catchUp(number) }
}
