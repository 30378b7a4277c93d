internal import Foundation

/// A commit that waits to be made, and its result.
///
/// Belongs to one ``BackedStore`` and is used in its isolation only.
final class PendingCommit {
  /// The outcome of a decision whether to make a commit.
  enum Verdict: Equatable {
    case proceed(removing: [String])
    case fail(StoreError)
    /// The commit must be tried again.
    ///
    /// Before that, corrupt bytes are quarantined if necessary, and the writes are prepared again, with one for each
    /// unusable value that the commit must quarantine.
    case retry
  }

  let tag: StoreTag
  let savedAt: Date
  let keys: [any AnyPendingKey]
  /// The time at which the caller began to wait.
  let start: ContinuousClock.Instant

  /// The commit that is written in place of this one: a later save of the same key, if one arrived in time.
  var successor: PendingCommit?

  /// The writes of the commit, as they were last prepared.
  private(set) var writes: [StoreWrite] = []

  /// The outcome of the last call of ``decide(reading:)``; ``Verdict/retry`` if it threw, or if there was no call since
  /// ``discardReads()``.
  private(set) var verdict = Verdict.retry

  /// The result of writing this commit; `nil` while it is in flight, or if it has a ``successor``.
  private var ownResult: Result<Void, StoreError>?

  /// The result of writing this commit or its successor; `nil` while it is in flight.
  var result: Result<Void, StoreError>? { (successor ?? self).ownResult }

  /// Whether the commit is durable or has failed.
  var hasResult: Bool { result != nil }

  /// Whether the commit is durable.
  var isMade: Bool { if case .success = result { true } else { false } }

  private let continuation: CheckedContinuation<Result<StoreCommit, StoreError>, Never>

  /// Creates a commit.
  ///
  /// - Parameters:
  ///   - start: The time at which the caller began to wait; `nil` if it is now.
  ///   - continuation: The continuation of the caller, which is resumed when the commit is complete.
  init(
    keys: [any AnyPendingKey], savedAt: Date, tag: StoreTag, start: ContinuousClock.Instant?,
    _ continuation: CheckedContinuation<Result<StoreCommit, StoreError>, Never>
  ) {
    self.keys = keys
    self.savedAt = savedAt
    self.tag = tag
    self.start = start ?? .now
    self.continuation = continuation
  }

  /// Whether the commit is one save without preconditions, which a later save of the same key may replace.
  var isReplaceable: Bool { keys.count == 1 && keys[0].isReplaceable }

  /// Prepares the writes.
  ///
  /// - Parameter readPart: Returns the bytes that are stored under the name of a part, or `nil`.
  /// - Throws: ``StoreError/encodingFailed(_:reason:)``.
  func encode(readPart: (_ name: String) -> Data?) throws(StoreError) {
    writes = []
    for key in keys { writes += try key.encode(savedAt: savedAt, tag: tag, readPart: readPart) }
  }

  /// Reads the keys, up to the first one that makes the commit fail, and decides whether to make the commit.
  ///
  /// The backend calls it while nothing but this commit can change the stored values, or calls it again if the values
  /// that were read have changed before the commit is made; see ``StoreBackend/commit(_:deciding:)``.
  func decide<Backend: StoreBackend>(reading backend: inout Backend) throws(StoreError) -> CommitDecision {
    var removals: [String] = []
    var needsRetry = false
    verdict = .retry
    for key in keys {
      switch try key.decide(reading: &backend) {
      case .proceed(let names): removals += names
      case .fail(let error):
        verdict = .fail(error)
        return .abandon
      // The other keys are decided first: if one of them makes the commit fail, nothing needs to be quarantined.
      case .retry: needsRetry = true
      }
    }
    if needsRetry { return .abandon }
    verdict = .proceed(removing: removals)
    return .proceed(removing: removals)
  }

  /// Discards the reads of all keys, and the verdict that is based on them.
  func discardReads() {
    for key in keys { key.discardRead() }
    verdict = .retry
  }

  /// Records the result of writing the commit, unless there is one already.
  func recordResult(_ result: Result<Void, StoreError>) {
    if ownResult == nil { ownResult = result }
  }

  /// Discards the result, because the store that contained the commit was quarantined.
  func discardResult() { ownResult = nil }

  /// Resumes the caller of the commit.
  ///
  /// A group's error may name what another commit asked for, and an error of a decision names a read. So the error gets
  /// the case that names what this commit asked for.
  func complete(_ result: Result<StoreCommit, StoreError>) {
    continuation.resume(returning: result.mapError { $0.naming(failure(of:)) })
  }

  private func failure(of call: SystemError) -> StoreError {
    if keys.contains(where: { $0.isSaved }) { return .writeFailed(call) }
    return keys.contains(where: { $0.hasChange }) ? .removeFailed(call) : .checkFailed(call)
  }
}

/// The change that a pending commit makes to one key, and the key's preconditions.
final class PendingKey<Value: Codable & Sendable>: AnyPendingKey {
  let slot: Slot<Value>
  private let change: StoreBatchChange<Value>?
  private let requirements: [StoreRequirement]
  /// The bytes of the value to save if it is stored whole; `nil` for a value in parts, and if nothing is saved.
  private let whole: PreparedChange<Value>.Whole?

  /// A value as the commit writes it, and the ids of the stored parts that it keeps.
  private struct Written {
    let edition: Edition
    let content: StoredContent<Value>
    let keptPartIDs: Set<String>
  }

  /// The value that the commit writes; `nil` if nothing is saved.
  private var written: Written?
  /// The result of the last read, until it is reconciled with the last known state, or discarded.
  private(set) var read: ReadResult<Value>?
  /// Whether the removal has anything to remove.
  ///
  /// This includes bytes that were quarantined for it, because for observers they are removed too.
  private var removesSomething = false
  /// Whether corrupt bytes were quarantined for the commit.
  private var wasQuarantined = false
  /// The unusable value that the commit quarantines, and the name of the quarantined bytes.
  private var quarantine: (value: UnusableValue, name: String)?

  var name: String { slot.name }
  var typed: PendingKey<Value> { self }

  init(_ slot: Slot<Value>, _ prepared: PreparedChange<Value>) {
    self.slot = slot
    change = prepared.entry.change
    requirements = prepared.entry.requirements
    whole = prepared.whole
  }

  var hasChange: Bool { change != nil }

  var isSaved: Bool { if case .save = change { true } else { false } }

  var isReplaceable: Bool { isSaved && requirements.isEmpty }

  var changesSomething: Bool {
    switch change {
    case .save: true
    case .remove: removesSomething
    case nil: false
    }
  }

  func encode(
    savedAt: Date, tag: StoreTag, readPart: (_ name: String) -> Data?
  ) throws(StoreError) -> [StoreWrite] {
    // These bytes become durable first, or together with the change.
    let quarantined = quarantine.map { [StoreWrite(name: $0.name, bytes: $0.value.bytes)] } ?? []
    return quarantined + (try encodeValue(savedAt: savedAt, tag: tag, readPart: readPart))
  }

  private func encodeValue(
    savedAt: Date, tag: StoreTag, readPart: (_ name: String) -> Data?
  ) throws(StoreError) -> [StoreWrite] {
    guard case .save(let value) = change else { return [] }
    if let whole {
      let content = StoredContent(value: value, counts: nil, ownSize: whole.bytes.count, partSizes: [])
      written = Written(edition: whole.edition, content: content, keptPartIDs: [])
      return [StoreWrite(name: name, bytes: whole.bytes)]
    }
    let format = slot.topic.format
    do {
      let encoded = try format.encode(value, over: storedParts) { readPart(StorePartName.encode($0, of: name)) }
      let header = Envelope.Header(
        schema: format.schema.version, savedAt: savedAt, tag: tag, partIDs: encoded.partIDs, longID: slot.longID)
      let bytes = try Envelope.encode(header, body: encoded.body)
      let partIDs = encoded.partIDs ?? []
      var sizes = storedPartSizes
      for part in encoded.newParts { sizes[part.id] = part.bytes.count }
      written = Written(
        edition: Edition(fingerprint: Fingerprint(bytes), header: header),
        content: StoredContent(
          value: value, counts: encoded.counts, ownSize: bytes.count, partSizes: partIDs.map { sizes[$0] ?? 0 }),
        keptPartIDs: Set(partIDs).subtracting(encoded.newParts.map(\.id)))
      return encoded.newParts.map { StoreWrite(name: StorePartName.encode($0.id, of: name), bytes: $0.bytes) }
        + [StoreWrite(name: name, bytes: bytes)]
    } catch {
      throw .encodingFailed(keyName, reason: String(describing: error))
    }
  }

  /// The parts of the last known stored value.
  private var storedParts: StoredParts<Value>? {
    guard let content = slot.topic.content(of: slot.id), let counts = content.counts,
      let ids = slot.topic.edition(of: slot.id)?.header.partIDs, ids.count == counts.count
    else { return nil }
    return StoredParts(value: content.value, ids: ids, counts: counts)
  }

  /// The sizes of the parts of the last known stored value, by id.
  private var storedPartSizes: [String: Int] {
    guard let ids = slot.topic.edition(of: slot.id)?.header.partIDs, let content = slot.topic.content(of: slot.id)
    else { return [:] }
    return Dictionary(zip(ids, content.partSizes)) { first, _ in first }
  }

  func decide<Backend: StoreBackend>(reading backend: inout Backend) throws(StoreError) -> PendingCommit.Verdict {
    let result = try slot.read(from: &backend, needsValue: false)
    read = result
    // The writes of the commit quarantine bytes that are no longer stored.
    if let quarantine, result.unusableValue?.fingerprint != quarantine.value.fingerprint { return .retry }
    switch result {
    case .corrupt: return .retry
    case .unreadable(let error): return .fail(error)
    case .future(let version, _, _):
      return .fail(.newerFormat(keyName, found: version, supported: Envelope.supported(by: Value.self)))
    case .nothing: return decide(replacing: nil)
    case .unusable(let value):
      guard isAsRequired(value.tag, isUsable: false) else { return .fail(.preconditionFailed(keyName)) }
      return decideQuarantine()
    case .unchanged(let edition), .value(let edition, _): return decide(replacing: edition)
    }
  }

  private func decide(replacing edition: Edition?) -> PendingCommit.Verdict {
    guard isAsRequired(edition?.header.tag, isUsable: edition != nil) else {
      return .fail(.preconditionFailed(keyName))
    }
    let storedPartIDs = edition?.header.partIDs ?? []
    switch change {
    case nil: return .proceed(removing: [])
    case .remove:
      removesSomething = edition != nil || wasQuarantined
      guard edition != nil else { return .proceed(removing: []) }
      return .proceed(removing: [name] + storedPartIDs.map { StorePartName.encode($0, of: name) })
    case .save:
      // After an external save, the parts to keep may no longer be stored.
      guard let keptPartIDs = written?.keptPartIDs, keptPartIDs.isSubset(of: storedPartIDs) else { return .retry }
      return .proceed(
        removing: storedPartIDs.filter { !keptPartIDs.contains($0) }.map { StorePartName.encode($0, of: name) })
    }
  }

  /// Decides about a change of an unusable value, whose preconditions hold.
  ///
  /// A save or a removal is tried again with a write that quarantines the bytes, unless it has that write already. The
  /// parts of the value stay, because the quarantined bytes refer to them.
  private func decideQuarantine() -> PendingCommit.Verdict {
    switch change {
    case nil: return .proceed(removing: [])
    case .remove where quarantine != nil:
      removesSomething = true
      return .proceed(removing: [name])
    case .save where quarantine != nil && written?.keptPartIDs.isEmpty == true: return .proceed(removing: [])
    case .remove, .save: return .retry
    }
  }

  private func isAsRequired(_ tag: StoreTag?, isUsable: Bool) -> Bool {
    requirements.allSatisfy { $0.isMet(by: tag, isUsable: isUsable) }
  }

  /// Returns the result of the last read, and discards it.
  func takeRead() -> ReadResult<Value>? {
    defer { read = nil }
    return read
  }

  /// The corrupt bytes that must be quarantined before the commit can be made, and why.
  var obstacle: (bytes: Data, reason: String)? {
    if case .corrupt(let bytes, let reason) = read { (bytes, reason) } else { nil }
  }

  /// Adds a write that quarantines the unusable value that the last read has found, if the commit changes the key.
  ///
  /// Does nothing if there was no read since the writes were prepared.
  func prepareQuarantine(at time: Date) {
    guard let read else { return }
    quarantine = hasChange ? read.unusableValue.map { ($0, .uniqueQuarantineName(for: name, at: time)) } : nil
  }

  /// The bytes that the commit has quarantined, if it was made: their name, and the reason.
  var madeQuarantine: (name: String, reason: String)? {
    quarantine.map { ($0.name, $0.value.reason.description) }
  }

  func discardRead() { read = nil }

  /// Records that corrupt bytes were quarantined for this commit.
  func recordQuarantine() { wasQuarantined = true }

  /// Records the change that a durable commit has made to the key.
  ///
  /// - Parameters:
  ///   - commit: The commit.
  ///   - isWritten: Whether the commit was written itself, and not replaced by a later save.
  /// - Returns: The content that was in memory before and that the commit has replaced, if any.
  func record(_ commit: StoreCommit, isWritten: Bool) -> StoredContent<Value>? {
    switch change {
    case nil: return nil
    case .remove:
      guard removesSomething else { return nil }
      return slot.topic.recordRemoval(of: slot.id, revision: commit.revision)
    case .save(let value):
      let written = isWritten ? written : nil
      let stored = StoredValue(
        value: value, savedAt: commit.savedAt, revision: commit.revision, tag: commit.tag,
        byteCount: written?.content.size)
      if let written { return slot.topic.recordSave(stored, slot.id, as: written.edition, written.content) }
      slot.topic.recordReplacedSave(stored, slot.id)
      return nil
    }
  }

  var keyName: StoreKeyName { slot.key.keyName }

  var writtenSize: Int? { written?.content.size }
}

/// A ``PendingKey`` of any type of value.
protocol AnyPendingKey: AnyObject {
  associatedtype Value: Codable & Sendable

  /// The encoded name of the key.
  var name: String { get }

  var keyName: StoreKeyName { get }

  /// The size of the written value, in bytes; `nil` if the commit doesn't save the key.
  var writtenSize: Int? { get }

  /// The key with its type.
  var typed: PendingKey<Value> { get }

  /// Whether the commit saves or removes the key, as opposed to only having a precondition on it.
  var hasChange: Bool { get }

  /// Whether the commit saves the key.
  var isSaved: Bool { get }

  /// Whether the key is saved without preconditions.
  var isReplaceable: Bool { get }

  /// Whether the commit changes the key, according to the last decision.
  var changesSomething: Bool { get }

  /// Returns the writes of the key.
  ///
  /// A value in parts is encoded by each call, because its bytes depend on the stored value. A whole value is already
  /// encoded.
  func encode(
    savedAt: Date, tag: StoreTag, readPart: (_ name: String) -> Data?
  ) throws(StoreError) -> [StoreWrite]

  /// Discards the last read, which is out of date.
  func discardRead()

  /// Reads the key, and decides whether its preconditions and its stored bytes allow the commit.
  func decide<Backend: StoreBackend>(reading backend: inout Backend) throws(StoreError) -> PendingCommit.Verdict
}
