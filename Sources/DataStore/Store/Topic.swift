internal import Foundation
internal import Multicast

/// One collection of a store: the format of its values, their last known state, and the channels of its observers.
///
/// A topic belongs to one ``BackedStore`` and is used only in the isolation of that store. A change that is recorded
/// isn't sent until the next call of ``flush(collecting:)``.
final class Topic<Value: Codable & Sendable>: AnyTopic {
  private typealias KeyChannel = UnownedChannel<StoreChange<Value>>
  private typealias CollectionChannel = UnownedChannel<[StoreChange<Value>]>

  let format: any ValueFormat<Value> = makeValueFormat(of: Value.self)

  private let collection: String
  private var state = TopicState()

  /// The decoded values that are kept in memory, by id.
  ///
  /// Each is the value of the edition that ``state`` has for the id.
  private var contents: [String?: StoredContent<Value>] = [:]

  /// The fingerprint of the bytes that were last read or written, and the backend's version at that time, by id.
  ///
  /// The version is the number that ``StoreBackend/externalVersion()`` returned. If that was `nil`, there is no entry.
  private var seen: [String?: (fingerprint: Fingerprint, version: UInt64)] = [:]

  /// The channels of the keys that are or were observed.
  ///
  /// A channel is released once no stream, subscription or iterator refers to it. Its entry stays here until a sweep
  /// removes it.
  private var channels: [String?: KeyChannel] = [:]
  /// When ``channels`` has this many entries, a sweep precedes the next new channel.
  ///
  /// It is twice the number that the last sweep left, but at least 64, so that sweeps cost amortized O(1) for each
  /// channel.
  private var sweepThreshold = 64

  /// The channel of the collection's observers.
  private var collectionChannel: CollectionChannel?

  /// The feeds that follow the collection or keys of it.
  private var feeds = TopicFeeds()

  /// A recorded change that isn't sent yet.
  private enum Unsent {
    case change(StoreChange<Value>)
    /// A value that can't be used, which only feeds learn of.
    case unusable(StoreFeedChange)
  }

  /// The changes that were recorded and aren't sent yet, in order.
  private var unsent: [Unsent] = []

  var typed: Topic<Value> { self }

  init(collection: String) {
    self.collection = collection
  }

  deinit {
    for channel in channels.values { channel.finish() }
    collectionChannel?.finish()
  }

  // MARK: - Known state

  func edition(of id: String?) -> Edition? { state.edition(of: id) }

  func content(of id: String?) -> StoredContent<Value>? { contents[id] }

  /// Whether the decoded value of an id is in memory.
  func holdsContent(of id: String?) -> Bool { contents[id] != nil }

  /// Returns the result of a read that found the last known edition, or `nil` if the value must be decoded again.
  func knownResult(_ edition: Edition, _ id: String?, needsValue: Bool) -> ReadResult<Value>? {
    guard needsValue else { return .unchanged(edition) }
    return contents[id].map { .value(edition, $0) }
  }

  /// Whether nothing was changed externally since an edition was read or written, so that it is still stored.
  func isCurrent(_ edition: Edition, _ id: String?, at version: UInt64?) -> Bool {
    guard let version, let seen = seen[id] else { return false }
    return seen.version == version && seen.fingerprint == edition.fingerprint
  }

  /// Forgets the last read of an id, so that the next call for the id reads the bytes again.
  func forgetRead(_ id: String?) { seen[id] = nil }

  /// Records which bytes were read or written, and the backend's version at that time.
  func noteRead(_ fingerprint: Fingerprint, _ id: String?, at version: UInt64?) {
    seen[id] = version.map { (fingerprint, $0) }
  }

  func isUnusable(_ fingerprint: Fingerprint, _ id: String?) -> Bool { state.isUnusable(fingerprint, id) }

  /// The number of ids that the topic keeps any state for.
  var knownCount: Int { state.knownCount }

  /// The keys that had stored bytes, usable or not, when they were last read or written, in no particular order.
  var storedKeys: [StoreKeyName] { state.ids.map { StoreKeyName(collection, id: $0) } }

  /// Whether the whole collection is observed.
  var isCollectionObserved: Bool { collectionChannel?.isReferenced ?? false || feeds.followsCollection }

  /// Whether a feed follows the collection or a key of it.
  var isFed: Bool { feeds.followsAnything }

  /// The keys that are observed individually, in no particular order.
  var observedKeys: [StoreKeyName] {
    let observedIDs = channels.compactMap { id, channel in channel.isReferenced ? .some(id) : nil }
    return (observedIDs + feeds.followedIDs).map { StoreKeyName(collection, id: $0) }
  }

  /// Whether an id is observed, by itself or as a part of the collection.
  func isObserved(_ id: String?) -> Bool {
    channels[id]?.isReferenced ?? false || collectionChannel?.isReferenced ?? false || feeds.follows(id)
  }

  func slot(_ key: StoreKey<Value>, named name: String) -> Slot<Value> {
    Slot(key: key, name: name, topic: self)
  }

  // MARK: - Recording

  /// Reconciles the result of a read with the last known state.
  ///
  /// If the read has found a change, the next ``flush(collecting:)`` sends it.
  ///
  /// - Parameters:
  ///   - result: The result of the read, which must not be ``ReadResult/corrupt(bytes:reason:)``.
  ///   - id: The id that was read.
  ///   - revision: The revision of the change, if the read has found one.
  func reconcile(_ result: ReadResult<Value>, _ id: String?, revision: UInt64) -> TopicState.Action {
    guard let found = result.foundState else { preconditionFailure("Corrupt bytes must be quarantined.") }
    let action = state.reconcile(found, id, revision: revision)
    switch result {
    case .value(_, let content): contents[id] = content
    case .unchanged: break
    default: contents[id] = nil
    }
    let key = StoreKey<Value>(collection, id: id)
    switch action {
    case .keep, .keepNothing: break
    case .sendSaved(let revision):
      guard case .value(let edition, let content) = result else {
        preconditionFailure("A new value must be decoded.")
      }
      unsent.append(.change(.saved(key, StoredValue(content, edition, revision: revision))))
    case .sendRemoved(let revision): unsent.append(.change(.removed(key, revision: revision)))
    case .hide(let isNew):
      channels[id]?.resetReplay()
      if isNew, let change = result.unusableChange(of: key.keyName) { recordUnusable(change) }
      if case .nothing = result { recordUnusable(.removed(key.keyName, revision: revision)) }
    }
    return action
  }

  /// Records a durable save, which the next ``flush(collecting:)`` sends.
  ///
  /// - Parameters:
  ///   - stored: The saved value.
  ///   - id: The id of the value.
  ///   - edition: The edition that was written.
  ///   - content: The content that was written.
  /// - Returns: The content that was in memory before, if any.
  func recordSave(
    _ stored: StoredValue<Value>, _ id: String?, as edition: Edition, _ content: StoredContent<Value>
  ) -> StoredContent<Value>? {
    state.recordSave(edition, id, revision: stored.revision)
    // The commit has read the key in the same transaction, so the backend's version is still that of the read.
    noteRead(edition.fingerprint, id, at: seen[id]?.version)
    unsent.append(.change(.saved(StoreKey(collection, id: id), stored)))
    return contents.updateValue(content, forKey: id)
  }

  /// Records a save that wasn't written itself, because a later save of the same key was written in its place.
  ///
  /// The next ``flush(collecting:)`` sends it.
  func recordReplacedSave(_ stored: StoredValue<Value>, _ id: String?) {
    unsent.append(.change(.saved(StoreKey(collection, id: id), stored)))
  }

  /// Records a durable removal, which the next ``flush(collecting:)`` sends.
  ///
  /// - Returns: The content that was in memory before, if any.
  func recordRemoval(of id: String?, revision: UInt64) -> StoredContent<Value>? {
    state.recordAbsence(of: id)
    seen[id] = nil
    unsent.append(.change(.removed(StoreKey(collection, id: id), revision: revision)))
    return contents.removeValue(forKey: id)
  }

  /// Records a change that only feeds learn of.
  private func recordUnusable(_ change: StoreFeedChange) {
    if feeds.follows(change.key.id) { unsent.append(.unusable(change)) }
  }

  /// Records that the bytes of an id were quarantined.
  ///
  /// - Parameters:
  ///   - id: The id.
  ///   - reason: The reason.
  ///   - byteCount: The size of the bytes.
  func recordQuarantine(of id: String?, reason: String, byteCount: Int) {
    let key = StoreKeyName(collection, id: id)
    recordUnusable(.unusable(key, schema: nil, reason: reason, byteCount: byteCount))
    state.recordAbsence(of: id)
    (contents[id], seen[id]) = (nil, nil)
    channels[id]?.resetReplay()
  }

  /// Records corrupt bytes that could not be quarantined.
  func recordUnusable(_ fingerprint: Fingerprint, _ id: String?) {
    // Unusable bytes have no revision, so `TopicState` ignores this one.
    _ = state.reconcile(.unusable(fingerprint), id, revision: 0)
    contents[id] = nil
    channels[id]?.resetReplay()
  }

  /// Records that the whole store was quarantined.
  func recordQuarantineOfAll(reason: String) {
    for key in storedKeys { recordUnusable(.unusable(key, schema: nil, reason: reason, byteCount: nil)) }
    state.recordAbsenceOfAll()
    (contents, seen) = ([:], [:])
    for channel in channels.values { channel.resetReplay() }
  }

  /// Records that the whole collection was listed and read.
  func recordListing() { state.recordListing() }

  /// Releases a decoded value, so that the next read decodes it again.
  func releaseContent(of id: String?) { contents[id] = nil }

  // MARK: - Sending

  /// Whether there are recorded changes that aren't sent yet.
  var hasUnsent: Bool { !unsent.isEmpty }

  /// Sends the recorded changes, except to feeds.
  ///
  /// The observers of a key receive each of its changes. The observers of the collection receive all changes as one
  /// element.
  ///
  /// - Parameter collect: Called with each change that a feed follows. The caller sends the feed one element with the
  ///   changes of all topics.
  func flush(collecting collect: (StoreFeedChange, FollowedFeed) -> Void) {
    guard !unsent.isEmpty else { return }
    let recorded = unsent
    unsent = []
    var changes: [StoreChange<Value>] = []
    for element in recorded {
      let feedChange: StoreFeedChange
      switch element {
      case .change(let change):
        changes.append(change)
        feedChange = StoreFeedChange(change)
      case .unusable(let change): feedChange = change
      }
      for feed in feeds.feeds(of: feedChange.key.id) { collect(feedChange, feed) }
    }
    if changes.isEmpty { return }
    for change in changes {
      guard let channel = channels[change.key.id] else { continue }
      channel.send(change)
      // A subscriber that registers between these two calls receives the removal as its first element.
      if case .removed = change { channel.resetReplay() }
    }
    collectionChannel?.send(changes)
  }

  // MARK: - Observing

  /// Lets a feed follow the collection or a key of it; see ``TopicFeeds/add(_:to:)``.
  func follow(_ part: StoreFeedPart, by feed: FollowedFeed) -> Bool { feeds.add(feed, to: part) }

  func endFollowing(_ part: StoreFeedPart, by feed: FollowedFeed) { feeds.remove(feed, from: part) }

  /// The feeds that follow an id.
  func feeds(of id: String?) -> [FollowedFeed] { feeds.isEmpty ? [] : feeds.feeds(of: id) }

  func removeReleasedFeeds() { feeds.removeReleased() }

  /// Returns the changes of one key, or `nil` if it isn't observed.
  func changes(of id: String?) -> MulticastStream<StoreChange<Value>, Never>? {
    channels[id]?.stream
  }

  /// Creates the channel of one key, with the stored value as its replay, and returns its first stream.
  func openChannel(of id: String?, stored: StoredValue<Value>?) -> MulticastStream<StoreChange<Value>, Never> {
    if channels.count >= sweepThreshold {
      channels = channels.filter { $0.value.isReferenced }
      sweepThreshold = max(64, 2 * channels.count)
    }
    let (channel, stream) = KeyChannel.makeStream(replay: 1)
    if let stored { channel.send(.saved(StoreKey(collection, id: id), stored)) }
    channels[id] = channel
    return stream
  }

  /// Registers a subscription to the changes of the whole collection.
  func subscribeToCollection() -> MulticastSubscription<[StoreChange<Value>], Never> {
    if let stream = collectionChannel?.stream { return stream.subscribe() }
    let (channel, stream) = CollectionChannel.makeStream(replay: 0)
    collectionChannel = channel
    return stream.subscribe()
  }
}

extension StoredValue {
  init(_ content: StoredContent<Value>, _ edition: Edition, revision: UInt64) {
    self.init(
      value: content.value, savedAt: edition.header.savedAt, revision: revision, tag: edition.header.tag,
      byteCount: content.size)
  }
}

/// A ``Topic`` of any type of value.
protocol AnyTopic: AnyObject {
  associatedtype Value: Codable & Sendable

  /// The topic with its type.
  var typed: Topic<Value> { get }

  var knownCount: Int { get }
  var storedKeys: [StoreKeyName] { get }
  var observedKeys: [StoreKeyName] { get }
  var isCollectionObserved: Bool { get }
  func isObserved(_ id: String?) -> Bool
  func holdsContent(of id: String?) -> Bool
  func recordQuarantineOfAll(reason: String)
  func releaseContent(of id: String?)
  var hasUnsent: Bool { get }
  var isFed: Bool { get }
  func flush(collecting collect: (StoreFeedChange, FollowedFeed) -> Void)
  func endFollowing(_ part: StoreFeedPart, by feed: FollowedFeed)
  func feeds(of id: String?) -> [FollowedFeed]
  func removeReleasedFeeds()
}

extension AnyTopic {
  /// The type of the values, for messages.
  var valueTypeName: String { "\(Value.self)" }
}
