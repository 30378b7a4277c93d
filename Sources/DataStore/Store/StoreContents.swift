internal import Foundation
internal import Multicast

/// What a ``BackedStore`` has, and what it knows of that: the backend, the topics, the revision of the newest change.
///
/// Its functions are the steps that all calls are made of. It belongs to one store and is used in its isolation only.
final class StoreContents<Backend: StoreBackend> {
  var topics = Topics()
  let now: @Sendable () -> Date
  private var backend: Backend
  /// The revision of the newest change.
  private var revision: UInt64 = 0
  /// The commit of the newest change, if it is an external one.
  private var lastExternalTag: StoreTag?
  private var recentlyUsed = RecentlyUsed(limit: 32 << 20)
  private let eventRelay: MulticastRelay<StoreEvent>

  init(backend: Backend, eventRelay: MulticastRelay<StoreEvent>, now: @escaping @Sendable () -> Date) {
    self.backend = backend
    self.eventRelay = eventRelay
    self.now = now
  }

  func send(_ event: StoreEvent) { eventRelay.send(event) }

  /// Uses the backend.
  ///
  /// A store that turns out to be corrupt as a whole has been quarantined, and an empty one is in its place.
  ///
  /// - Parameter retriesAfterQuarantine: Whether `body` is called again on the empty store.
  func withBackend<Result>(
    retriesAfterQuarantine: Bool = true, _ body: (inout Backend) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    defer { for event in backend.takeEvents() { send(event) } }
    do throws(StoreError) {
      return try body(&backend)
    } catch {
      guard case .damaged(let movedTo, let reason) = error else { throw error }
      for topic in topics.all { topic.recordQuarantineOfAll() }
      send(.storeQuarantined(movedTo: movedTo, reason: reason))
      guard retriesAfterQuarantine else { throw error }
    }
    return try withBackend(retriesAfterQuarantine: false, body)
  }

  /// Returns the value of a key if it is at hand and nothing was changed externally since it was read or written.
  ///
  /// - Returns: `nil` if the key must be read. That read meets whatever else is wrong here, too.
  /// - Throws: ``StoreError/damaged(movedTo:reason:)`` only, because no later call meets the damage.
  func knownValue<Value>(of key: StoreKey<Value>) throws(StoreError) -> StoredValue<Value>? {
    guard topics[key.collection]?.holdsContent(of: key.id) ?? false else { return nil }
    do throws(StoreError) {
      let slot = try topics.open(key)
      let known = try withBackend(retriesAfterQuarantine: false) { (backend: inout Backend) throws(StoreError) in
        try slot.readKnown(from: &backend)
      }
      return known.flatMap { reconcile($0, slot).stored }
    } catch {
      if case .damaged = error { throw error }
      return nil
    }
  }

  /// Records what a read found, other than corrupt bytes.
  ///
  /// An external change is sent by ``ChangeChecker/publish(_:)``.
  @discardableResult
  func reconcile<Value>(_ result: ReadResult<Value>, _ slot: Slot<Value>) -> Reconciled<Value> {
    let action = slot.topic.reconcile(result, slot.id, revision: revision(of: result))
    switch result {
    case .value(_, let content): noteUse(of: slot.key.keyName, size: content.size)
    case .unchanged: break
    default: recentlyUsed.remove(slot.key.keyName)
    }
    switch action {
    case .sendSaved(let new), .sendRemoved(let new):
      revision = new
      lastExternalTag = result.tag
    case .keep, .keepNothing, .hide: break
    }
    return Reconciled(result, action)
  }

  /// The revision of an external change, if a read turns out to be one: values of one commit share it.
  private func revision<Value>(of result: ReadResult<Value>) -> UInt64 {
    if let tag = result.tag, tag == lastExternalTag { revision } else { revision + 1 }
  }

  /// Records a commit that is durable; the next flush of each of its topics sends it.
  ///
  /// - Returns: The commit, and what was replaced: values that may be large, to be released when no caller waits any more.
  func record(_ commit: PendingCommit) -> (made: StoreCommit, released: [Any]) {
    if commit.keys.contains(where: \.changesSomething) { (revision, lastExternalTag) = (revision + 1, nil) }
    let made = StoreCommit(revision: revision, tag: commit.tag)
    var released: [Any] = []
    for key in commit.keys { released.append(record(key, of: commit, made)) }
    return (made, released)
  }

  /// - Returns: What was replaced.
  private func record(_ key: some AnyPendingKey, of commit: PendingCommit, _ made: StoreCommit) -> Any {
    let key = key.typed
    let old = key.slot.topic.content(of: key.slot.id)
    key.record(made, savedAt: commit.savedAt, isWritten: commit.successor == nil)
    if let size = key.writtenSize {
      noteUse(of: key.slot.key.keyName, size: size)
    } else if key.changesSomething {
      recentlyUsed.remove(key.slot.key.keyName)
    }
    return old as Any
  }

  /// Moves corrupt bytes out of the way.
  ///
  /// - Returns: Where they are; `nil` if other bytes are stored by now.
  /// - Throws: ``StoreError/damaged(movedTo:reason:)`` if the whole store turned out to be corrupt: nothing that was read
  ///   before is there any more.
  func quarantine<Value>(
    _ bytes: Data, of slot: Slot<Value>, reason: String
  ) throws(StoreError) -> String? {
    let time = now()
    let movedTo: String?
    do throws(StoreError) {
      movedTo = try withBackend(retriesAfterQuarantine: false) { (backend: inout Backend) throws(StoreError) in
        try backend.quarantine(bytes, of: slot.name, at: time)
      }
    } catch {
      if case .damaged = error { throw error }
      slot.topic.recordUnusable(Fingerprint(bytes), slot.id)
      throw error
    }
    guard let movedTo else { return nil }
    slot.topic.recordQuarantine(of: slot.id)
    send(.valueQuarantined(slot.key.keyName, movedTo: movedTo, reason: reason))
    return movedTo
  }

  /// Reports what observers of a key can't be given.
  func report<Value>(_ result: ReadResult<Value>, _ slot: Slot<Value>) {
    let keyName = slot.key.keyName
    switch result {
    case .future(let found, _):
      let supported = Envelope.supported(by: Value.self)
      send(.newerValueLeftUntouched(keyName, found: found, supported: supported))
    case .unmigratable(_, let failure, _):
      send(.migrationFailed(keyName, from: failure.version, reason: failure.reason))
    case .unreadable(let error): send(.valueUnreadable(keyName, error))
    case .nothing, .unchanged, .value, .corrupt: break
    }
  }

  /// Keeps the decoded value of a key at hand, and releases those that were used longest ago.
  private func noteUse(of keyName: StoreKeyName, size: Int) {
    for released in recentlyUsed.use(keyName, size: size) {
      topics[released.collection]?.releaseContent(of: released.id)
    }
  }
}
