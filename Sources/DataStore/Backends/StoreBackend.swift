public import Foundation

/// Where a ``BackedStore`` keeps its bytes: four functions make a store of your own.
///
/// A backend knows names and bytes, and nothing of values, versions or observers. It belongs to one store, which calls
/// it on a thread of the store's own, one call at a time: it may block, and needs no locks for itself. Names are
/// harmless as file names and at most ``StoreKeyName/maximumEncodedLength`` + 17 bytes long. A name with a `+` is a
/// part of a value; all other names are encoded by ``StoreKeyName/encoded()``.
///
/// Other processes, or other stores in this one, may use the same place at the same time. What the first line of each
/// function promises holds against all of them.
///
/// If one corruption can make everything unreadable, as in a database, each call may throw
/// ``StoreError/damaged(movedTo:reason:)``: once, after everything was quarantined and nothing is stored any more.
public protocol StoreBackend: SendableMetatype {
  /// Atomic: returns all of the bytes that one commit stored under a name, or `nil` if there are none.
  ///
  /// Two reads see commits in their order: the later one never finds an older state of the store.
  ///
  /// - Throws: ``StoreError/readFailed(_:)``.
  mutating func read(_ name: String) throws(StoreError) -> Data?

  /// Atomic and durable: makes all of the changes or none, at any instant and in every process.
  ///
  /// - Parameters:
  ///   - writes: What to store. The function may prepare the writes before it calls `decide`.
  ///   - decide: Reads what is stored, and decides. Called when nothing but this commit can change what is stored; it may
  ///     be called again if that turns out to be wrong.
  /// - Returns: Whether the commit was made: `false` if `decide` returned ``CommitDecision/abandon``.
  /// - Throws: ``StoreError/writeFailed(_:)``, ``StoreError/removeFailed(_:)``, or what `decide` throws; then nothing was
  ///   changed.
  mutating func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool

  /// Atomic for each commit, not for the group: makes several commits that change different names.
  ///
  /// Implement it where one synchronisation of the medium can serve many commits. The default implementation makes one
  /// commit after the other.
  ///
  /// - Parameter decide: As in ``commit(_:deciding:)``, with the index of the commit.
  /// - Returns: For each commit whether it was made, or why not.
  /// - Throws: ``StoreError/damaged(movedTo:reason:)`` only.
  mutating func commit(
    group: [[StoreWrite]], deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> [Result<Bool, StoreError>]

  /// Atomic: moves bytes out of the way, if they are still the stored ones.
  ///
  /// They are kept where neither ``read(_:)`` nor ``names()`` finds them and where they replace none that were quarantined
  /// before. ``quarantineName(for:at:attempt:)`` makes names for that.
  ///
  /// - Parameters:
  ///   - bytes: What ``read(_:)`` returned.
  ///   - name: The name.
  ///   - time: The present time, for the new name.
  /// - Returns: Where the bytes are now, in words or as a path; `nil` if other bytes are stored under the name by now.
  /// - Throws: ``StoreError/writeFailed(_:)`` or ``StoreError/readFailed(_:)``; then the bytes are where they were.
  mutating func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String?

  /// Atomic: returns all names under which something is stored at one instant, without those of parts, in any order.
  ///
  /// - Throws: ``StoreError/readFailed(_:)``.
  mutating func names() throws(StoreError) -> [String]

  /// Atomic: all that `body` reads is stored at one instant, and so is what ``takeExternalChanges()`` returns in it.
  ///
  /// The default implementation calls `body`: enough where nothing changes the place but this store. One that finds out too
  /// late that it read at several instants may call `body` again.
  ///
  /// - Throws: ``StoreError/readFailed(_:)``, or what `body` throws.
  mutating func snapshot<Result>(
    _ body: (inout Self) throws(StoreError) -> Result
  ) throws(StoreError) -> Result

  /// Durable, and atomic for each item: deletes what is kept, so that nothing of it is left in the place.
  ///
  /// That is values in whatever state, their parts, and what was quarantined; with it the names, and what the place keeps
  /// of earlier values under them, such as free pages of a database. The default implementation throws.
  ///
  /// - Parameter isErased: Whether to delete an item. Called when nothing but this call can change what is stored.
  /// - Throws: ``StoreError/removeFailed(_:)`` or ``StoreError/readFailed(_:)``; then some items may be deleted.
  mutating func erase(_ isErased: (StoredItem) -> Bool) throws(StoreError)

  /// Returns a number that is another one after any external change, or `nil` if that isn't known.
  ///
  /// Where the number is the same, the store doesn't read again what it knows. An idle store asks for it on the thread of
  /// a load, so it should take microseconds. The default implementation returns `nil`.
  ///
  /// - Throws: ``StoreError/readFailed(_:)``.
  mutating func externalVersion() throws(StoreError) -> UInt64?

  /// Begins to watch for external changes. The default implementation watches nothing.
  ///
  /// Called before the first value is observed, and again only if ``takeExternalChanges()`` threw. The watch ends with
  /// the backend.
  ///
  /// - Parameter onChange: Asks the store to call ``takeExternalChanges()`` soon. It may be called from any thread and
  ///   without need, takes little time, and doesn't keep the store alive.
  /// - Throws: ``StoreError/readFailed(_:)``.
  mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError)

  /// Returns what may have been changed externally since the last call.
  ///
  /// It leaves out no change. It may return names that did not change, and this store's own changes; the store reads what
  /// is stored and sends only what is new. If it returns any while a group of commits is made, the rest of the group
  /// waits for the next one.
  ///
  /// - Throws: ``StoreError/readFailed(_:)`` if the watch broke. The store reports it and begins another.
  mutating func takeExternalChanges() throws(StoreError) -> ExternalChanges

  /// Locks a name for as long as the lock, or the process, exists. The default implementation knows no locks.
  ///
  /// A lock excludes only locks of the same name, whether of another process or of another backend in this one.
  ///
  /// - Parameter name: An encoded ``StoreKeyName`` without an id.
  /// - Throws: ``StoreError/writeFailed(_:)``.
  mutating func acquireLock(_ name: String) throws(StoreError) -> StoreLockResult

  /// Returns what the owner of the store should know, and forgets it. The default implementation returns nothing.
  mutating func takeEvents() -> [StoreEvent]
}

/// Bytes to store under a name.
public struct StoreWrite: Hashable, Sendable {
  /// The name.
  public let name: String

  /// The bytes.
  public let bytes: Data

  /// Creates a write.
  public init(name: String, bytes: Data) {
    self.name = name
    self.bytes = bytes
  }
}

/// What is to become of a commit whose writes are prepared.
public enum CommitDecision: Hashable, Sendable {
  /// The writes are made, and what is stored under these names is removed with them.
  case proceed(removing: [String])

  /// Nothing is changed.
  case abandon
}

/// What may have been changed externally where a ``StoreBackend`` keeps its bytes.
public enum ExternalChanges: Hashable, Sendable {
  /// What is stored under these names, in the order of the changes if it is known.
  case names([String])

  /// Anything.
  case unknown
}

extension StoreBackend {
  /// Makes one commit after the other.
  public mutating func commit(
    group: [[StoreWrite]], deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> [Result<Bool, StoreError>] {
    var results: [Result<Bool, StoreError>] = []
    var lockout: StoreError?
    for (index, writes) in group.enumerated() {
      if let lockout {
        // Each would wait for the same lock for as long as this one did.
        results.append(.failure(lockout))
        continue
      }
      do throws(StoreError) {
        results.append(
          .success(
            try commit(writes) { (backend: inout Self) throws(StoreError) in try decide(index, &backend) }))
      } catch {
        if case .damaged = error { throw error }
        if error.isLockout { lockout = error }
        results.append(.failure(error))
      }
    }
    return results
  }

  /// Calls `body`.
  public mutating func snapshot<Result>(
    _ body: (inout Self) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try body(&self)
  }

  /// Throws, because it doesn't know what the place keeps.
  public mutating func erase(_ isErased: (StoredItem) -> Bool) throws(StoreError) {
    throw .removeFailed(.erasureUnsupported(by: Self.self))
  }

  /// Doesn't know.
  public mutating func externalVersion() throws(StoreError) -> UInt64? { nil }

  /// Watches nothing.
  public mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError) {}

  /// Knows of no changes.
  public mutating func takeExternalChanges() throws(StoreError) -> ExternalChanges { .names([]) }

  /// Knows no locks.
  public mutating func acquireLock(_ name: String) throws(StoreError) -> StoreLockResult { .unsupported }

  /// Has nothing to report.
  public mutating func takeEvents() -> [StoreEvent] { [] }

  /// Returns a name for quarantined bytes: `<name>.corrupt-<time>`, which no key encodes to.
  ///
  /// - Parameters:
  ///   - name: The name under which the bytes were stored.
  ///   - time: The time of the quarantine.
  ///   - attempt: 1 at first, and one more for each name that was taken.
  public static func quarantineName(for name: String, at time: Date, attempt: Int) -> String {
    let style = Date.ISO8601FormatStyle().year().month().day().dateSeparator(.omitted)
      .time(includingFractionalSeconds: true).timeSeparator(.omitted)
    let suffix = attempt == 1 ? "" : "-\(attempt)"
    return "\(name)\(StoredItem.quarantineMark)\(time.formatted(style))Z\(suffix)"
  }
}

extension StoreError {
  /// Whether another process kept the whole store locked for as long as a call waits.
  var isLockout: Bool {
    switch self {
    case .readFailed(let error), .writeFailed(let error), .removeFailed(let error): error.isLockedOut
    default: false
    }
  }

  /// Whether one entry is at fault, and not the place where all of them are.
  var concernsOneEntry: Bool {
    if case .readFailed(let error) = self { error.concernsOneEntry } else { false }
  }
}
