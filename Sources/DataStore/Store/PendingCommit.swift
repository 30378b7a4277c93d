internal import Foundation

/// A commit that waits to be made, and its result.
///
/// Belongs to one ``BackedStore`` and is used in its isolation only.
final class PendingCommit {
  /// What became of the last attempt.
  enum Verdict: Equatable {
    case proceed(removing: [String])
    case fail(StoreError)
    /// Something was in the way that has to be dealt with first.
    case again
  }

  let tag: StoreTag
  let savedAt: Date
  let keys: [any AnyPendingKey]

  /// The commit that is written in place of this one: a later save of the same key, if one came before this one was
  /// written.
  var successor: PendingCommit?

  /// What to write, as prepared last.
  private(set) var writes: [StoreWrite] = []

  /// What the last call of ``decide(reading:)`` found.
  private(set) var verdict = Verdict.again

  /// Whether the commit is durable, or why not; `nil` while it isn't known.
  private var result: Result<Void, StoreError>?

  /// Whether what was written, by this commit or by its successor, is durable, or why not; `nil` while it isn't known.
  var settledResult: Result<Void, StoreError>? { (successor ?? self).result }

  /// Whether it is known what became of the commit.
  var isSettled: Bool { settledResult != nil }

  private let continuation: CheckedContinuation<Result<StoreCommit, StoreError>, Never>

  /// Creates a commit.
  ///
  /// - Parameter continuation: Resumed when the commit has ended.
  init(
    keys: [any AnyPendingKey], savedAt: Date, tag: StoreTag,
    _ continuation: CheckedContinuation<Result<StoreCommit, StoreError>, Never>
  ) {
    self.keys = keys
    self.savedAt = savedAt
    self.tag = tag
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

  /// Reads all keys and decides, when nothing but this commit can change what is stored.
  func decide<Backend: StoreBackend>(reading backend: inout Backend) throws(StoreError) -> CommitDecision {
    var removals: [String] = []
    var isAgain = false
    verdict = .again
    for key in keys {
      switch try key.decide(reading: &backend) {
      case .proceed(let names): removals += names
      case .fail(let error):
        verdict = .fail(error)
        return .abandon
      // A commit that fails because of another key moves nothing out of the way.
      case .again: isAgain = true
      }
    }
    if isAgain { return .abandon }
    verdict = .proceed(removing: removals)
    return .proceed(removing: removals)
  }

  /// Forgets what the keys were found to hold.
  func discardReads() {
    for key in keys { key.discardRead() }
    verdict = .again
  }

  /// Records whether the commit is durable.
  ///
  /// The first result counts.
  func settle(_ result: Result<Void, StoreError>) {
    if self.result == nil { self.result = result }
  }

  /// Ends the commit and resumes its caller.
  func complete(_ outcome: Result<StoreCommit, StoreError>) {
    continuation.resume(returning: outcome)
  }
}

/// What a pending commit does to one key.
final class PendingKey<Value: Codable & Sendable>: AnyPendingKey {
  let slot: Slot<Value>
  private let change: StoreBatchChange<Value>?
  private let requirements: [StoreTag?]
  private let whole: PreparedChange<Value>.Whole?

  private var written: (edition: Edition, content: StoredContent<Value>, partIDs: Set<String>)?
  /// The result of the last read, until it is reconciled.
  private(set) var read: ReadResult<Value>?
  /// Whether the removal removes something.
  ///
  /// Bytes that were quarantined for it are removed for observers, too.
  private var hasRemovable = false
  private var wasQuarantined = false
  /// The tag of a value that was quarantined for the commit, which requires it all the same.
  private var quarantinedTag: StoreTag?

  var name: String { slot.name }
  var typed: PendingKey<Value> { self }

  init(_ slot: Slot<Value>, _ prepared: PreparedChange<Value>) {
    self.slot = slot
    change = prepared.entry.change
    requirements = prepared.entry.requirements
    whole = prepared.whole
  }

  var isChange: Bool { change != nil }

  var isReplaceable: Bool {
    if case .save = change { requirements.isEmpty } else { false }
  }

  var changesSomething: Bool {
    switch change {
    case .save: true
    case .remove: hasRemovable
    case nil: false
    }
  }

  func encode(
    savedAt: Date, tag: StoreTag, readPart: (_ name: String) -> Data?
  ) throws(StoreError) -> [StoreWrite] {
    guard case .save(let value) = change else { return [] }
    if let whole {
      written = (whole.edition, StoredContent(value: value, counts: nil, ownSize: whole.bytes.count, partSizes: []), [])
      return [StoreWrite(name: name, bytes: whole.bytes)]
    }
    let format = slot.topic.format
    do {
      let encoded = try format.encode(value, over: storedParts) { readPart(StorePartName.encode($0, of: name)) }
      let header = Envelope.Header(
        schema: format.schema.version, savedAt: savedAt, tag: tag, partIDs: encoded.partIDs)
      let bytes = try Envelope.encode(header, body: encoded.body)
      let partIDs = encoded.partIDs ?? []
      var sizes = storedPartSizes
      for part in encoded.newParts { sizes[part.id] = part.bytes.count }
      written = (
        Edition(fingerprint: Fingerprint(bytes), header: header),
        StoredContent(
          value: value, counts: encoded.counts, ownSize: bytes.count, partSizes: partIDs.map { sizes[$0] ?? 0 }),
        Set(partIDs).subtracting(encoded.newParts.map(\.id))
      )
      return encoded.newParts.map { StoreWrite(name: StorePartName.encode($0.id, of: name), bytes: $0.bytes) }
        + [StoreWrite(name: name, bytes: bytes)]
    } catch {
      throw .encodingFailed(slot.key.keyName, reason: String(describing: error))
    }
  }

  /// The parts of the value that is stored as far as is known.
  private var storedParts: StoredParts<Value>? {
    guard let content = slot.topic.content(of: slot.id), let counts = content.counts,
      let ids = slot.topic.edition(of: slot.id)?.header.partIDs, ids.count == counts.count
    else { return nil }
    return StoredParts(value: content.value, ids: ids, counts: counts)
  }

  /// The sizes of those parts, by id.
  private var storedPartSizes: [String: Int] {
    guard let ids = slot.topic.edition(of: slot.id)?.header.partIDs, let content = slot.topic.content(of: slot.id)
    else { return [:] }
    return Dictionary(zip(ids, content.partSizes)) { first, _ in first }
  }

  func decide<Backend: StoreBackend>(reading backend: inout Backend) throws(StoreError) -> PendingCommit.Verdict {
    let result = try slot.read(from: &backend, needsValue: false)
    read = result
    switch result {
    case .corrupt: return .again
    case .unreadable(let error): return .fail(error)
    case .future(let version, _):
      return .fail(.newerFormat(slot.key.keyName, found: version, supported: Envelope.supported(by: Value.self)))
    case .nothing: return decide(replacing: nil)
    case .unmigratable(let edition, _, _):
      guard case .save = change, isAsRequired(edition.header.tag) else { return decide(replacing: edition) }
      return .again
    case .unchanged(let edition), .value(let edition, _): return decide(replacing: edition)
    }
  }

  private func decide(replacing edition: Edition?) -> PendingCommit.Verdict {
    guard isAsRequired(edition?.header.tag ?? quarantinedTag) else {
      return .fail(.preconditionFailed(slot.key.keyName))
    }
    let storedIDs = edition?.header.partIDs ?? []
    switch change {
    case nil: return .proceed(removing: [])
    case .remove:
      hasRemovable = edition != nil || wasQuarantined
      guard edition != nil else { return .proceed(removing: []) }
      return .proceed(removing: [name] + storedIDs.map { StorePartName.encode($0, of: name) })
    case .save:
      // The parts to keep are those of another value if an external save came in between.
      guard let keptIDs = written?.partIDs, keptIDs.isSubset(of: storedIDs) else { return .again }
      return .proceed(
        removing: storedIDs.filter { !keptIDs.contains($0) }.map { StorePartName.encode($0, of: name) })
    }
  }

  private func isAsRequired(_ tag: StoreTag?) -> Bool {
    requirements.allSatisfy { $0 == tag }
  }

  /// Returns the result of the last read, and forgets it.
  func takeRead() -> ReadResult<Value>? {
    defer { read = nil }
    return read
  }

  /// What must be quarantined before the commit can be made.
  var obstacle: (bytes: Data, reason: String)? {
    switch (read, change) {
    case (.corrupt(let bytes, let reason), _): (bytes, reason)
    case (.unmigratable(_, let failure, let bytes), .save): (bytes, failure.description)
    default: nil
    }
  }

  func discardRead() { read = nil }

  /// Records that what was read was quarantined for this commit.
  func recordQuarantine() {
    (wasQuarantined, quarantinedTag) = (true, read?.tag)
  }

  func record(_ commit: StoreCommit, savedAt: Date, isWritten: Bool) {
    switch change {
    case nil: break
    case .remove: if hasRemovable { slot.topic.recordRemoval(of: slot.id, revision: commit.revision) }
    case .save(let value):
      let stored = StoredValue(
        value: value, savedAt: savedAt, revision: commit.revision, tag: commit.tag,
        byteCount: isWritten ? writtenSize : nil)
      slot.topic.recordSave(stored, slot.id, as: isWritten ? written.map { ($0.edition, $0.content) } : nil)
    }
  }

  /// The size of what a save wrote, in bytes.
  var writtenSize: Int? { written?.content.size }
}

/// A ``PendingKey`` of any type of value.
protocol AnyPendingKey: AnyObject {
  associatedtype Value: Codable & Sendable

  /// The encoded name of the key.
  var name: String { get }

  /// The key with its type.
  var typed: PendingKey<Value> { get }

  /// Whether the commit saves or removes the key, and doesn't only require something of it.
  var isChange: Bool { get }

  /// Whether the key is saved without preconditions.
  var isReplaceable: Bool { get }

  /// Whether the last decision changes the key.
  var changesSomething: Bool { get }

  func encode(
    savedAt: Date, tag: StoreTag, readPart: (_ name: String) -> Data?
  ) throws(StoreError) -> [StoreWrite]
  func discardRead()
  func decide<Backend: StoreBackend>(reading backend: inout Backend) throws(StoreError) -> PendingCommit.Verdict
  func record(_ commit: StoreCommit, savedAt: Date, isWritten: Bool)
}
