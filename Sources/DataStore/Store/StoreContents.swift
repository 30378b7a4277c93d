internal import Foundation
internal import Multicast

/// The contents of a ``BackedStore``: the backend, a ``Topic`` for each collection, and the newest revision.
///
/// Its methods are the steps that all calls of the store consist of. It belongs to one store and is used only in the
/// isolation of that store.
final class StoreContents<Backend: StoreBackend> {
  var topics = Topics()
  let now: @Sendable () -> Date
  private var backend: Backend
  /// Whether the backend is closed after each use, because the store is suspended.
  private var closesBackend = false
  /// The revision of the newest change.
  private var revision: UInt64 = 0
  /// The tag of the commit that made the newest change; `nil` unless that change is an external save.
  private var lastExternalTag: StoreTag?
  /// Decides which values stay decoded in memory.
  private var recentlyUsed: RecentlyUsed
  /// The topics with recorded changes that aren't sent yet, each once, in the order of their first changes.
  private var topicsWithUnsent: [any AnyTopic] = []
  private let eventRelay: MulticastRelay<StoreEvent>
  private let jobStart: () -> ContinuousClock.Instant?
  /// The time since which the commits that are being made have waited; `nil` if no commits are being made.
  private var commitStart: ContinuousClock.Instant?

  /// - Parameters:
  ///   - jobStart: Returns the time at which the caller of the present call began to wait; `nil` if it didn't wait.
  ///   - memoryLimit: The maximum total size of the values that stay decoded in memory, measured by their stored bytes.
  ///     The default is 32 MiB.
  init(
    backend: Backend, eventRelay: MulticastRelay<StoreEvent>, now: @escaping @Sendable () -> Date,
    jobStart: @escaping () -> ContinuousClock.Instant? = { nil }, memoryLimit: Int = 32 << 20
  ) {
    self.jobStart = jobStart
    self.backend = backend
    self.eventRelay = eventRelay
    self.now = now
    recentlyUsed = RecentlyUsed(limit: memoryLimit)
  }

  func send(_ event: StoreEvent) { eventRelay.send(event) }

  /// Closes the backend, now and after each use.
  func beginClosingBackend() {
    closesBackend = true
    closeBackend()
  }

  /// Lets the backend stay open from now on.
  func endClosingBackend() { closesBackend = false }

  private func closeBackend() {
    backend.close()
    sendBackendEvents()
  }

  private func sendBackendEvents() {
    for event in backend.takeEvents() { send(event) }
  }

  /// Calls a closure with the backend, and sends the events of the backend.
  ///
  /// While the store is suspended, the backend is closed before the call returns. So a call of the store holds nothing
  /// open once it has returned, however many uses of the backend it consists of.
  ///
  /// If the backend throws ``StoreError/corruptStore(movedTo:reason:)``, it has already replaced the whole store with
  /// an empty one. Each topic then records that nothing is stored, and an event is sent.
  ///
  /// - Parameters:
  ///   - retriesAfterQuarantine: Whether to call `body` again on the empty store, instead of throwing the error.
  ///   - body: The closure.
  func withBackend<Result>(
    retriesAfterQuarantine: Bool = true, _ body: (inout Backend) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    defer { if closesBackend { closeBackend() } else { sendBackendEvents() } }
    if let start = commitStart ?? jobStart() { backend.beginCall(at: start) }
    do throws(StoreError) {
      return try body(&backend)
    } catch {
      guard case .corruptStore(let movedTo, let reason) = error else { throw error }
      for topic in topics.all {
        topic.recordQuarantineOfAll(reason: reason)
        noteUnsent(topic)
      }
      recentlyUsed.removeAll()
      send(.storeQuarantined(movedTo: movedTo, reason: reason))
      guard retriesAfterQuarantine else { throw error }
    }
    return try withBackend(retriesAfterQuarantine: false, body)
  }

  /// Calls a closure that makes commits, which wait since a given time.
  ///
  /// The job that makes commits arrives later than they do, so its own start doesn't count.
  func makingCommits(waitingSince start: ContinuousClock.Instant, _ body: () -> Void) {
    commitStart = start
    defer { commitStart = nil }
    body()
  }

  /// Returns the value of a key if it is in memory and nothing was changed externally since it was read or written.
  ///
  /// - Returns: `nil` if the key must be read.
  /// - Throws: ``StoreError/corruptStore(movedTo:reason:)``, because the backend throws it only once. After any other
  ///   error the result is `nil`, because the read that follows meets the same error.
  func knownValue<Value>(of key: StoreKey<Value>) throws(StoreError) -> StoredValue<Value>? {
    // A backend that is closed after each use can't answer in microseconds whether anything was changed.
    guard !closesBackend, topics[key.collection]?.holdsContent(of: key.id) ?? false else { return nil }
    do throws(StoreError) {
      let slot = try topics.open(key)
      let knownResult = try withBackend(retriesAfterQuarantine: false) { (backend: inout Backend) throws(StoreError) in
        try slot.knownResult(from: &backend)
      }
      return knownResult.flatMap { reconcile($0, slot).stored }
    } catch {
      if case .corruptStore = error { throw error }
      return nil
    }
  }

  /// Reconciles the result of a read with the last known state.
  ///
  /// If the read has found an external change, the next flush of the topic sends it.
  ///
  /// - Precondition: The read has not found corrupt bytes, which the caller quarantines instead.
  @discardableResult
  func reconcile<Value>(_ result: ReadResult<Value>, _ slot: Slot<Value>) -> Reconciled<Value> {
    let action = slot.topic.reconcile(result, slot.id, revision: revision(of: result))
    switch result {
    case .value(_, let content): noteUse(of: slot.key.keyName, size: content.size)
    case .unchanged: break
    default: recentlyUsed.remove(slot.key.keyName)
    }
    switch action {
    case .sendSaved(let newRevision), .sendRemoved(let newRevision):
      revision = newRevision
      lastExternalTag = result.tag
    case .keep, .keepNothing, .hide: break
    }
    noteUnsent(slot.topic)
    return Reconciled(result, action)
  }

  /// Returns the revision to use if the result of a read turns out to be an external change.
  ///
  /// The values of one external commit share a revision if no other change comes between them. A removal has no tag, so
  /// it has a revision of its own.
  private func revision<Value>(of result: ReadResult<Value>) -> UInt64 {
    if let tag = result.tag, tag == lastExternalTag { revision } else { revision + 1 }
  }

  /// Records a durable commit, which the next flush of each of its topics sends.
  ///
  /// - Returns: The commit, and the values that it has replaced. They may be large, so release them when no caller
  ///   waits.
  func record(_ commit: PendingCommit) -> (made: StoreCommit, replacedValues: [Any]) {
    if commit.keys.contains(where: \.changesSomething) { (revision, lastExternalTag) = (revision + 1, nil) }
    var byteCounts: [StoreKeyName: Int] = [:]
    for key in commit.keys where commit.successor == nil { byteCounts[key.keyName] = key.writtenSize }
    let made = StoreCommit(revision: revision, tag: commit.tag, savedAt: commit.savedAt, byteCounts: byteCounts)
    var replacedValues: [Any] = []
    for key in commit.keys { replacedValues.append(record(key, of: commit, made)) }
    return (made, replacedValues)
  }

  /// Records the change of one key.
  ///
  /// - Returns: The decoded value that was in memory before and that the commit has replaced, if any.
  private func record(_ key: some AnyPendingKey, of commit: PendingCommit, _ made: StoreCommit) -> Any {
    let key = key.typed
    if commit.successor == nil, let (name, reason) = key.madeQuarantine {
      let movedTo = backend.place(ofQuarantined: name)
      send(.valueQuarantined(key.slot.key.keyName, movedTo: movedTo, reason: reason))
    }
    // A commit with a successor has only this key. Its successor, a later save of the key, was written instead.
    let replaced = key.record(made, isWritten: commit.successor == nil)
    if let size = key.writtenSize {
      noteUse(of: key.slot.key.keyName, size: size)
    } else if key.changesSomething {
      recentlyUsed.remove(key.slot.key.keyName)
    }
    noteUnsent(key.slot.topic)
    return replaced as Any
  }

  private func noteUnsent(_ topic: some AnyTopic) {
    if topic.hasUnsent, !topicsWithUnsent.contains(where: { $0 === topic }) { topicsWithUnsent.append(topic) }
  }

  /// Sends the recorded changes of all topics.
  ///
  /// They are those of one commit of this store, or those of external commits that were noticed together, so each feed
  /// receives them as one element.
  ///
  /// - Parameter own: The commit, if this store has made it. A feed that follows one of its keys receives an element even
  ///   if the commit has changed nothing.
  func flush(own: PendingCommit? = nil) {
    let flushedTopics = topicsWithUnsent
    topicsWithUnsent = []
    var feeds: [FollowedFeed] = []
    for topic in flushedTopics {
      topic.flush { change, feed in if feed.collect(change) { feeds.append(feed) } }
    }
    for key in own?.keys ?? [] {
      let name = key.keyName
      for feed in topics[name.collection]?.feeds(of: name.id) ?? [] where !feeds.contains(where: { $0 === feed }) {
        feeds.append(feed)
      }
    }
    for feed in feeds { feed.sendCollected(revision: revision, ownTag: own?.tag) }
  }

  /// Quarantines corrupt bytes.
  ///
  /// - Returns: The place of the quarantined bytes; `nil` if other bytes, or none, are stored by now.
  /// - Throws: ``StoreError/corruptStore(movedTo:reason:)`` if the whole store turned out to be corrupt. All earlier
  ///   reads are then out of date. Another ``StoreError`` if the bytes can't be quarantined.
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
      if case .corruptStore = error { throw error }
      slot.topic.recordUnusable(Fingerprint(bytes), slot.id)
      recentlyUsed.remove(slot.key.keyName)
      throw error
    }
    guard let movedTo else { return nil }
    slot.topic.recordQuarantine(of: slot.id, reason: reason, byteCount: bytes.count)
    noteUnsent(slot.topic)
    recentlyUsed.remove(slot.key.keyName)
    send(.valueQuarantined(slot.key.keyName, movedTo: movedTo, reason: reason))
    return movedTo
  }

  /// Sends an event if the read of a key has found a value that observers can't receive, unless its bytes are corrupt.
  ///
  /// For corrupt bytes, ``quarantine(_:of:reason:)`` sends the event.
  func report<Value>(_ result: ReadResult<Value>, _ slot: Slot<Value>) {
    let keyName = slot.key.keyName
    switch result {
    case .future(let found, _, _):
      let supported = Envelope.supported(by: Value.self)
      send(.newerValueLeftUntouched(keyName, found: found, supported: supported))
    case .unusable(let value): send(value.reason.event(for: keyName))
    case .unreadable(let error): send(.valueUnreadable(keyName, error))
    case .nothing, .unchanged, .value, .corrupt: break
    }
  }

  /// Records the use of a decoded value, and releases the least recently used ones if the memory limit is exceeded.
  ///
  /// Saves count as uses, and so do reads that need the value. A commit that has only a precondition on a key doesn't
  /// need its value.
  private func noteUse(of keyName: StoreKeyName, size: Int) {
    for releasedKey in recentlyUsed.use(keyName, size: size) {
      topics[releasedKey.collection]?.releaseContent(of: releasedKey.id)
    }
  }
}
