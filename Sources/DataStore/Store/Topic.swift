internal import Foundation
internal import Multicast

/// One collection of a store: the format of its values, their last known state, and the channels of its observers.
///
/// A topic belongs to one ``BackedStore`` and is used only in the isolation of that store. A change that is recorded
/// isn't sent until the next call of ``flush()``.
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

  /// The changes that were recorded and aren't sent yet, in order.
  private var unsent: [StoreChange<Value>] = []

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
  var isCollectionObserved: Bool { collectionChannel?.isReferenced ?? false }

  /// The keys that are observed individually, in no particular order.
  var observedKeys: [StoreKeyName] {
    channels.compactMap { id, channel in channel.isReferenced ? StoreKeyName(collection, id: id) : nil }
  }

  /// Whether an id is observed, by itself or as a part of the collection.
  func isObserved(_ id: String?) -> Bool {
    channels[id]?.isReferenced ?? false || isCollectionObserved
  }

  func slot(_ key: StoreKey<Value>, named name: String) -> Slot<Value> {
    Slot(key: key, name: name, topic: self)
  }

  // MARK: - Recording

  /// Reconciles the result of a read with the last known state.
  ///
  /// If the read has found a change, the next ``flush()`` sends it.
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
      unsent.append(.saved(key, StoredValue(content, edition, revision: revision)))
    case .sendRemoved(let revision): unsent.append(.removed(key, revision: revision))
    case .hide: channels[id]?.resetReplay()
    }
    return action
  }

  /// Records a durable save, which the next ``flush()`` sends.
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
    unsent.append(.saved(StoreKey(collection, id: id), stored))
    return contents.updateValue(content, forKey: id)
  }

  /// Records a save that wasn't written itself, because a later save of the same key was written in its place.
  ///
  /// The next ``flush()`` sends it.
  func recordReplacedSave(_ stored: StoredValue<Value>, _ id: String?) {
    unsent.append(.saved(StoreKey(collection, id: id), stored))
  }

  /// Records a durable removal, which the next ``flush()`` sends.
  ///
  /// - Returns: The content that was in memory before, if any.
  func recordRemoval(of id: String?, revision: UInt64) -> StoredContent<Value>? {
    state.recordAbsence(of: id)
    seen[id] = nil
    unsent.append(.removed(StoreKey(collection, id: id), revision: revision))
    return contents.removeValue(forKey: id)
  }

  /// Records that the bytes of an id were quarantined.
  func recordQuarantine(of id: String?) {
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
  func recordQuarantineOfAll() {
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

  /// Sends the recorded changes.
  ///
  /// The observers of a key receive each of its changes. The observers of the collection receive all changes as one
  /// element.
  func flush() {
    guard !unsent.isEmpty else { return }
    let changes = unsent
    unsent = []
    for change in changes {
      guard let channel = channels[change.key.id] else { continue }
      channel.send(change)
      // A subscriber that registers between these two calls receives the removal as its first element.
      if case .removed = change { channel.resetReplay() }
    }
    collectionChannel?.send(changes)
  }

  // MARK: - Observing

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
  func recordQuarantineOfAll()
  func releaseContent(of id: String?)
  func flush()
}

extension AnyTopic {
  /// The type of the values, for messages.
  var valueTypeName: String { "\(Value.self)" }
}
