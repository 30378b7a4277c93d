public import Foundation

/// A medium in which a ``BackedStore`` keeps bytes, such as a folder or a database.
///
/// To write a store for another medium, implement ``read(_:)``, ``commit(_:deciding:)``, ``quarantine(_:of:at:)`` and
/// ``names()``. All other requirements have default implementations.
///
/// The cases of the errors say what a backend can know: a backend names the step that failed, and the store replaces
/// ``StoreError/readFailed(_:)`` and its like by the case that names what its caller asked for.
///
/// A backend handles names and bytes only; it knows nothing of values, versions or observers. It belongs to one store,
/// which makes one call at a time, on a serial queue of its own. So a backend needs no locks to protect its own state,
/// and every call except ``externalVersion()`` may block.
///
/// Names are safe to use as file names. The name of a value is the result of ``StoreKeyName/encoded()``, and
/// ``StoreKeyName/isEncoded(_:)`` tells such names from others in the medium. A ``PartitionedValue`` is stored in
/// parts, each under a name of its own: the name of the value, a `+`, and the 16 characters of the part's id. So a name
/// is at most ``StoreKeyName/maximumEncodedLength`` + 17 bytes long. A commit that replaces or removes a value that the
/// program can't decode also writes the old bytes, under a name of `quarantineName(for:at:attempt:)`, which has up to
/// 40 bytes more than the name of the value.
///
/// Other processes, and other stores in this process, may use the same medium at the same time. The guarantees of each
/// function, such as atomicity, hold against all of them.
///
/// If a single corruption can make the whole medium unreadable, as in a database, any call may throw
/// ``StoreError/corruptStore(movedTo:reason:)``. The backend throws this error once, after it has quarantined all
/// contents, so that the medium is empty. If the whole medium has a future layout, any call may throw
/// ``StoreError/newerStore(path:found:supported:)``. A call that throws this error has changed nothing.
public protocol StoreBackend: SendableMetatype {
  /// Returns the bytes stored under a name, or `nil` if there are none.
  ///
  /// A read is atomic: all of the bytes are from one commit. Reads see commits in order: a later read never returns an
  /// older state of the store.
  ///
  /// - Throws: ``StoreError/readFailed(_:)``.
  mutating func read(_ name: String) throws(StoreError) -> Data?

  /// Makes all of the changes of a commit, or none of them.
  ///
  /// A commit is atomic at any instant and in every process, and it is durable once the call has returned.
  ///
  /// - Parameters:
  ///   - writes: The bytes to store. The function may prepare the writes before it calls `decide`. The bytes that have
  ///     a name of `quarantineName(for:at:attempt:)` are quarantined: they are kept where neither ``read(_:)`` nor
  ///     ``names()`` finds them, and in no later commit.
  ///   - decide: Reads the stored bytes and decides whether to proceed. It must be called while nothing but this commit
  ///     can change the stored bytes. A backend that can't guarantee this calls `decide` again if the bytes that
  ///     `decide` has read are no longer the stored ones when the commit is made.
  /// - Returns: Whether the commit was made: `false` if `decide` returned ``CommitDecision/abandon``.
  /// - Throws: ``StoreError/writeFailed(_:)``, ``StoreError/removeFailed(_:)``, or the error that `decide` throws. Then
  ///   nothing was changed, unless the error is of an unknown outcome; see ``StoreError/writeFailed(_:)``.
  mutating func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool

  /// Makes several commits that change different names.
  ///
  /// Each commit is atomic, but the group isn't. Implement this function if one synchronization of the medium can serve
  /// many commits. The default implementation makes one commit after another.
  ///
  /// - Parameters:
  ///   - group: The writes of each commit.
  ///   - decide: The same as in ``commit(_:deciding:)``, called with the index of the commit, in the order of the
  ///     group. A backend may call it again, for the same commit or for the whole group from its first commit on.
  /// - Returns: The result of each commit: whether it was made, or the error that prevented it.
  /// - Throws: ``StoreError/corruptStore(movedTo:reason:)`` only. Any other error is among the results.
  mutating func commit(
    group: [[StoreWrite]], deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> [Result<Bool, StoreError>]

  /// Moves corrupt bytes to a quarantine, if they are still the stored ones.
  ///
  /// The move is atomic. Quarantined bytes are kept where neither ``read(_:)`` nor ``names()`` finds them, and they
  /// never replace bytes that were quarantined before. `quarantineName(for:at:attempt:)` returns suitable names.
  ///
  /// - Parameters:
  ///   - bytes: The bytes that ``read(_:)`` returned.
  ///   - name: The name under which the bytes are stored.
  ///   - time: The current time, for the new name.
  /// - Returns: The new location of the bytes, as a description or a path; `nil` if other bytes, or none, are stored
  ///   under the name by now.
  /// - Throws: ``StoreError/writeFailed(_:)`` or ``StoreError/readFailed(_:)``. Then the bytes were not moved, unless
  ///   the error is of an unknown outcome; see ``StoreError/writeFailed(_:)``.
  mutating func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String?

  /// Returns the place of bytes that a commit has quarantined, as a description or a path.
  ///
  /// The default implementation returns the name.
  ///
  /// - Parameter name: The name of the quarantined bytes, of `quarantineName(for:at:attempt:)`.
  func place(ofQuarantined name: String) -> String

  /// Returns all names under which bytes are stored, except those of parts and of quarantined bytes, in any order.
  ///
  /// The result is atomic: it reflects one instant.
  ///
  /// - Throws: ``StoreError/readFailed(_:)``.
  mutating func names() throws(StoreError) -> [String]

  /// Calls `body` with a consistent view of the medium.
  ///
  /// All reads in `body` reflect one instant, and so does the result of `takeExternalChanges()` in it. The default
  /// implementation only calls `body`, which is sufficient if nothing but this store changes the medium. An
  /// implementation that detects a change only after the reads may call `body` again.
  ///
  /// - Throws: ``StoreError/readFailed(_:)``, or the error that `body` throws.
  mutating func snapshot<Result>(
    _ body: (inout Self) throws(StoreError) -> Result
  ) throws(StoreError) -> Result

  /// Deletes items so that no trace of them is left in the medium.
  ///
  /// Items are values in any state, their parts, and quarantined bytes. Their names are deleted too, and so are
  /// remnants of earlier values, such as free pages of a database. The deletion is durable, and atomic for each item.
  /// The default implementation throws.
  ///
  /// - Parameter isErased: Returns whether to delete an item. It must be called while nothing but this erasure can
  ///   change the stored bytes. A backend that can't guarantee this calls `isErased` again if anything has changed
  ///   before the deletion.
  /// - Throws: ``StoreError/eraseFailed(_:)`` or ``StoreError/readFailed(_:)``; then some items may have been deleted.
  mutating func erase(_ isErased: (StoredItem) -> Bool) throws(StoreError)

  /// Returns a number that changes with every external change, or `nil` if the backend has no such number.
  ///
  /// While the number stays the same, the store doesn't read again what it has read before. If the store is idle, a
  /// load calls this function on the caller's thread, so the function should take only microseconds. The default
  /// implementation returns `nil`.
  ///
  /// - Throws: ``StoreError/readFailed(_:)``.
  mutating func externalVersion() throws(StoreError) -> UInt64?

  /// Starts to watch for external changes.
  ///
  /// The store calls this function before the first value is observed, and again only after this function or
  /// `takeExternalChanges()` has thrown, or after ``close()``. The watch ends when ``close()`` is called or the backend
  /// is released. The default implementation watches nothing.
  ///
  /// - Parameter onChange: Asks the store to call `takeExternalChanges()` soon. A backend may call `onChange` from any
  ///   thread, and also when nothing has changed. `onChange` returns quickly and doesn't keep the store alive.
  /// - Throws: ``StoreError/readFailed(_:)``.
  mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError)

  /// Returns the names that may have been changed externally since the last call.
  ///
  /// The result omits no external change. It may also contain names that did not change, and names that this store
  /// changed itself, because the store reads the stored bytes and sends only new values.
  ///
  /// But such names can delay commits. While the store watches, it also calls this function when it decides whether to
  /// make a commit. If that commit isn't the first of its group, the store ignores only names that an earlier commit of
  /// the group has removed and that are still missing. If the result may include any other name, the store abandons
  /// this commit and those behind it, and makes them in a later call of ``commit(group:deciding:)``.
  ///
  /// - Throws: ``StoreError/readFailed(_:)`` if the watch has failed. The store reports the error and starts a new
  ///   watch.
  mutating func takeExternalChanges() throws(StoreError) -> ExternalChanges

  /// Waits until no commit whose outcome is unknown can still take effect.
  ///
  /// A server may still be making a commit although its answer was lost. The default implementation does nothing.
  ///
  /// - Throws: ``StoreError/readFailed(_:)`` if that isn't certain.
  mutating func settle() throws(StoreError)

  /// Locks a name until the lock is released or the process ends.
  ///
  /// A lock that a server keeps also ends when the connection to the server is lost. The default implementation
  /// supports no locks.
  ///
  /// A lock excludes only other locks of the same name, in this process and in every other one.
  ///
  /// - Parameter name: An encoded ``StoreKeyName`` without an id.
  /// - Throws: ``StoreError/lockFailed(_:)``.
  mutating func acquireLock(_ name: String) throws(StoreError) -> StoreLockResult

  /// Ends the watch, and closes what the backend has open, such as a connection.
  ///
  /// After it has returned, the backend has no lock and no descriptor, except those of a ``StoreLock`` that is still
  /// held. A later call opens again what it needs. The store calls this function when it is suspended, and after each
  /// use of the backend until it is resumed. Closing a backend that is already closed does nothing.
  ///
  /// A backend that watches, or keeps anything open between two calls, must implement this function. The default
  /// implementation does nothing.
  mutating func close()

  /// Tells the backend since when the caller of the store has waited.
  ///
  /// The store calls this function before the other ones, except for a call that didn't wait. Calls wait for their turn,
  /// so a backend that waits for a server can count the time of the call from its start, not only from its turn. The
  /// default implementation does nothing.
  ///
  /// - Parameter start: The time at which the call arrived. Of several commits that are made together, it is the time of
  ///   the first one.
  mutating func beginCall(at start: ContinuousClock.Instant)

  /// Returns the events that the owner of the store should see, each once.
  ///
  /// The default implementation returns none.
  mutating func takeEvents() -> [StoreEvent]
}

/// Bytes to store under a name.
public struct StoreWrite: Hashable, Sendable {
  /// The name under which the bytes are stored.
  public let name: String

  /// The bytes to store.
  public let bytes: Data

  /// Creates a write.
  public init(name: String, bytes: Data) {
    self.name = name
    self.bytes = bytes
  }
}

/// The decision about a commit whose writes are prepared.
public enum CommitDecision: Hashable, Sendable {
  /// Makes the writes, and removes the bytes stored under these names in the same commit.
  case proceed(removing: [String])

  /// Changes nothing.
  case abandon
}

/// The external changes of a ``StoreBackend``'s medium.
public enum ExternalChanges: Hashable, Sendable {
  /// The bytes under these names may have changed; the names are in the order of the changes if that is known.
  case names([String])

  /// The bytes under any name may have changed.
  case unknown
}

extension StoreBackend {
  /// Makes one commit after another.
  public mutating func commit(
    group: [[StoreWrite]], deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> [Result<Bool, StoreError>] {
    try commitOneByOne(group, deciding: decide)
  }

  /// Makes one commit after another, so that a commit that fails doesn't fail the others.
  ///
  /// - Parameter endsGroup: Returns whether an error fails the remaining commits too, without an attempt.
  mutating func commitOneByOne(
    _ group: [[StoreWrite]], endingAt endsGroup: (StoreError) -> Bool = \.isLockout,
    deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> [Result<Bool, StoreError>] {
    var results: [Result<Bool, StoreError>] = []
    var groupEndingError: StoreError?
    for (index, writes) in group.enumerated() {
      if let groupEndingError {
        // Each remaining commit would wait for the same lock or server, and for just as long.
        results.append(.failure(groupEndingError))
        continue
      }
      do throws(StoreError) {
        results.append(
          .success(
            try commit(writes) { (backend: inout Self) throws(StoreError) in try decide(index, &backend) }))
      } catch {
        if case .corruptStore = error { throw error }
        if endsGroup(error) { groupEndingError = error }
        results.append(.failure(error))
      }
    }
    return results
  }

  /// Returns the name.
  public func place(ofQuarantined name: String) -> String { name }

  /// Calls `body`.
  public mutating func snapshot<Result>(
    _ body: (inout Self) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try body(&self)
  }

  /// Throws, because this implementation doesn't know what the medium keeps.
  public mutating func erase(_ isErased: (StoredItem) -> Bool) throws(StoreError) {
    throw .eraseFailed(.erasureUnsupported(by: Self.self))
  }

  /// Returns `nil`.
  public mutating func externalVersion() throws(StoreError) -> UInt64? { nil }

  /// Watches nothing.
  public mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError) {}

  /// Returns no changes.
  public mutating func takeExternalChanges() throws(StoreError) -> ExternalChanges { .names([]) }

  /// Does nothing, because a commit that has failed can't take effect later.
  public mutating func settle() throws(StoreError) {}

  /// Returns ``StoreLockResult/unsupported``.
  public mutating func acquireLock(_ name: String) throws(StoreError) -> StoreLockResult { .unsupported }

  /// Does nothing.
  public mutating func close() {}

  /// Does nothing.
  public mutating func beginCall(at start: ContinuousClock.Instant) {}

  /// Returns no events.
  public mutating func takeEvents() -> [StoreEvent] { [] }

  /// Returns a name for quarantined bytes: `<name>.corrupt-<time>`, plus `-<attempt>` from the second attempt on.
  ///
  /// No key encodes to such a name.
  ///
  /// - Parameters:
  ///   - name: The name under which the bytes were stored.
  ///   - time: The time of the quarantine.
  ///   - attempt: The number of the attempt: 1 at first, and one more after each name that is taken already.
  public static func quarantineName(for name: String, at time: Date, attempt: Int) -> String {
    StoredItem.quarantineName(for: name, at: time, attempt: attempt)
  }
}

extension StoreError {
  /// Whether another process or store held the lock of the whole medium for longer than a call waits.
  var isLockout: Bool { systemError?.isLockout ?? false }

  /// Whether the server of the medium couldn't be reached.
  var isLostConnection: Bool {
    #if PostgreSQL
      return systemError?.isLostConnection ?? false
    #else
      return false
    #endif
  }

  /// Whether the error may concern only one stored value, and not the whole medium.
  var concernsOneEntry: Bool {
    if case .readFailed(let error) = self { error.concernsOneEntry } else { false }
  }
}
