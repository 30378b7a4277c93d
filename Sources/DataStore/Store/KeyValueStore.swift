public import Multicast

/// A durable store of `Codable` values, addressed by collection and id, that broadcasts their changes.
///
/// Program against this protocol, and choose a concrete store where the app is assembled: ``FileStore``,
/// ``UserDefaultsStore``, ``InMemoryStore``, a store that a package trait adds, or one of your own. All of them keep
/// the same promises, which the conformance checks in `DataStoreTesting` verify.
///
/// - **Durability**: Once a call has returned, its change survives an exit, a crash or `SIGKILL` of the process, if the
///   store's medium does. A call that throws has changed nothing, unless its documentation or that of its error says
///   otherwise.
/// - **Atomicity**: At any instant, every process finds a commit applied completely or not at all.
/// - **Ordering**: Changes are made in the order in which the calls arrive. They are sent in the same order, each
///   exactly once, after they are durable and before the call returns. All keys share one order, and
///   ``StoredValue/revision`` is the position of a change in it.
/// - **Group commit**: Saves and commits that arrive while the store is writing are written together if the medium
///   supports that. Of several saves of one key, the store may write only the last. Each save returns when its value,
///   or a later one, is durable. All values are sent, even those that were never written.
/// - **External changes**: A change that another process or another store object makes in the same place is noticed by
///   the next call for its key, if not before. Observers receive the newest external value of a key once. The store may
///   skip values that were replaced before it noticed them. Whether a change is noticed without a call depends on the
///   medium. The store's own changes are never reported as external ones. The last save wins unless a precondition says
///   otherwise.
/// - **Schemas**: A value of an older schema is migrated when it is read; see ``VersionedValue``. A value of a future
///   schema is left untouched and reported. Only ``erase(where:)`` and ``removeAll(in:)`` may delete it.
/// - **Corruption**: Corrupt bytes are quarantined, and ``events`` reports where they are. A value that can't be
///   decoded, although its checksum is right, is left untouched and reported, so that a repaired program reads it
///   again. A save or a removal quarantines it. Streams continue with the next value that can be decoded.
/// - **Lifetime**: Streams don't keep a store alive. They finish when it is released.
/// - **Cancellation**: Cancelling a caller doesn't interrupt its call. A save that has begun runs to completion and
///   reports its result.
public protocol KeyValueStore: Sendable {
  /// Returns the stored value of a key, or `nil` if nothing is stored.
  ///
  /// - Throws: ``StoreError/undecodable(_:movedTo:reason:)`` for corrupt bytes, once, because the call quarantines them
  ///   and later calls return `nil`. If another call has quarantined them already, only ``events`` reports them. The
  ///   same error, without a place, each time for a value that can't be decoded, although its checksum is right.
  ///   ``StoreError/newerFormat(_:found:supported:)`` each time for a value of a future format or schema.
  ///   ``StoreError/migrationFailed(_:from:reason:)`` each time for a value that can't be migrated.
  ///   ``StoreError/corruptStore(movedTo:reason:)`` once for a store that was corrupt as a whole. Otherwise another
  ///   ``StoreError``.
  /// - Complexity: O(*b*) for the *b* bytes of the value. Bytes whose decoded value is still in memory aren't decoded
  ///   again.
  func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>?

  /// Stores a value, and sends it to every observer once it is durable.
  ///
  /// - Returns: The stored value, with its time, revision and tag.
  /// - Throws: A ``StoreError``. The new value isn't sent. The old value is intact, unless it was quarantined, as
  ///   ``StoreError`` describes, or the error is a ``StoreError/writeFailed(_:)`` of unknown outcome.
  /// - Complexity: O(*b*) for the bytes of the new and the old value; see ``PartitionedValue`` for large values.
  ///   Sending is O(1) plus O(*s*), where *s* is the number of observers that are suspended in `next()`.
  @discardableResult
  func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>

  /// Removes the stored value of a key, and notifies every observer.
  ///
  /// If nothing is stored, the call changes and sends nothing. Bytes that are corrupt or can't be decoded or migrated
  /// aren't deleted but quarantined, which ``events`` reports.
  ///
  /// - Throws: A ``StoreError``. No removal is sent. The value is still stored, unless it was quarantined, as
  ///   ``StoreError`` describes, or the error is a ``StoreError/removeFailed(_:)`` of unknown outcome.
  /// - Complexity: That of reading the value.
  func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError)

  /// Removes all values of a collection in one commit, and notifies every observer.
  ///
  /// - Throws: A ``StoreError``, also for a value of a future format. For a value of a future schema, the call throws
  ///   only if this store object has used the collection with a type before. Otherwise the store doesn't know which
  ///   schemas are supported, and removes the value. After an error, all values are still stored, with the exceptions
  ///   that ``remove(_:)`` lists.
  /// - Complexity: O(*n*) to list the names of all *n* values in the store, plus O(*m* log *m*) for the *m* values of
  ///   the collection, plus the reading of each.
  func removeAll(in collection: String) async throws(StoreError)

  /// Applies several saves and removals as one change: all or none, at any instant, in every process.
  ///
  /// Observers of a collection receive all changes that a commit makes in it as one element; see
  /// ``StoreObservation/changes``. All values that one call of ``observe(collection:as:)`` reads are of the same
  /// instant. Two calls of ``load(_:)`` may read at different instants, but the later one never returns older values
  /// than the earlier one.
  ///
  /// - Returns: The commit, with its time, revision and tag.
  /// - Throws: ``StoreError/preconditionFailed(_:)`` for a precondition that doesn't hold, or another ``StoreError``:
  ///   ``StoreError/writeFailed(_:)`` if the batch has a save, ``StoreError/removeFailed(_:)`` if it has removals only,
  ///   and ``StoreError/checkFailed(_:)`` if it has preconditions only. None of the batch's changes is sent. Nothing is
  ///   changed either, unless the outcome of the commit is unknown or stored bytes were quarantined, as ``StoreError``
  ///   describes.
  /// - Complexity: The sum of its saves and removals. Each precondition reads the value of its key.
  @discardableResult
  func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit

  /// Returns the changes of one key, starting with the stored value.
  ///
  /// Each subscriber receives the stored value first, if there is one. It then receives every later change that this
  /// store makes to the key, and the external changes that the store notices. None of them is dropped, however slow a
  /// subscriber is. A subscriber that needs only the newest value uses `buffering(.latest)`.
  ///
  /// - Throws: A ``StoreError``. Bytes that can't be decoded or migrated are no error: ``events`` reports them. The
  ///   call throws for a value of a future format or schema, and if corrupt bytes can't be quarantined. While an
  ///   earlier stream of the key is still in use, it throws in neither case. ``events`` then reports the bytes, unless
  ///   the store's last read of the key has already found them.
  /// - Complexity: That of a ``load(_:)``.
  func changes<Value>(of key: StoreKey<Value>) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never>

  /// Returns the values of a collection, and a subscription to all later changes of the collection.
  ///
  /// Reading and registration are one step: no change is lost between the two, and none is delivered twice.
  ///
  /// - Parameters:
  ///   - collection: The name of the collection.
  ///   - type: The type of its values.
  /// - Throws: A ``StoreError``. Single values that can't be decoded, migrated or read, or that are of a future format
  ///   or schema, are no error: they are left out, and ``events`` reports them. If corrupt bytes can't be quarantined,
  ///   the call throws.
  /// - Complexity: O(*n*) to list the *n* names in the store, plus O(*m* log *m*) for the *m* values of the collection,
  ///   plus the decoding of each.
  func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable

  /// Erases the items that a closure selects, and leaves no byte of them in the store.
  ///
  /// Use it for the data of a user who has signed out. A removal isn't enough: it keeps bytes that can't be decoded,
  /// and a database may keep the bytes of a removed value until it reuses their space. This call deletes values in any
  /// state, including values of a future format and quarantined bytes. What a drive retains of deleted files is up to
  /// the system. The replay of ``events`` is cleared.
  ///
  /// Observers in every process are notified as if the values had been removed. A commit that another process is making
  /// at the same time may store erased data again, unless one of its preconditions requires that an erased value is
  /// still stored. If that commit fails, the other process deletes the bytes that it has prepared. If the other process
  /// ends before that, the next process that uses the store deletes them.
  ///
  /// The default implementation throws.
  ///
  /// - Parameter isErased: Returns whether to erase an item. The store waits for it in the middle of a transaction, so
  ///   it must be quick and must not call a store.
  /// - Throws: ``StoreError/eraseFailed(_:)``, or another ``StoreError``. Some items may then be erased already; call
  ///   again.
  /// - Complexity: O(*n*) for the names in the store. A database is rewritten completely.
  func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError)

  /// Creates a feed of the commits, which follows nothing yet.
  ///
  /// The default implementation follows a collection by ``observe(collection:as:)`` and a key by ``changes(of:)``, so a
  /// commit may be several elements; see ``feedIsWhole``.
  ///
  /// - Complexity: O(1).
  func feed() async -> any StoreFeed

  /// Whether each commit is one element of a ``StoreFeed``, however many collections it changes.
  ///
  /// A store that doesn't watch its medium, for example because it is suspended, notices a commit of another store
  /// object only by the next ``StoreFeed/catchUp()``, or by a call for a key that the commit has changed. In the second
  /// case, the commit may be several elements.
  ///
  /// The default implementation returns `false`.
  var feedIsWhole: Bool { get }

  /// Locks a name, so that only one of several processes performs a task.
  ///
  /// A locked name can't be locked again, not even by the same store. A lock has no effect on calls of other kinds.
  ///
  /// A lock ends when its ``StoreLock`` is released or when its process ends, so a process that is killed leaves no
  /// lock behind. A lock that a server keeps also ends when the connection to the server is lost.
  ///
  /// The default implementation returns ``StoreLockResult/unsupported``.
  ///
  /// - Parameter name: The name to lock, which may be as long as the name of a collection.
  /// - Returns: The lock, or the reason why there is none.
  /// - Throws: ``StoreError/invalidKey(_:)`` for a name that is empty or too long, ``StoreError/lockFailed(_:)``, or
  ///   another ``StoreError``.
  func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult

  /// Suspends the store, so that it holds nothing that the system minds while the process is suspended.
  ///
  /// Once the call has returned, the store holds no lock, no watch and no open connection. iOS ends a process that is
  /// suspended while it holds a lock on a file in a shared container, so call this when the app goes to the background.
  ///
  /// The call waits for the calls in progress. A ``StoreLock`` that is still held isn't ended, because only its owner
  /// knows whether its task has ended: release it before. Until then its file stays open and locked, or the connection
  /// that it belongs to stays open. Streams stay alive, and still finish only when the store is released.
  ///
  /// A suspended store works. A call opens again what it needs, and closes it before it returns. Observers receive the
  /// changes that the store makes itself. An external change is noticed by the next call for its key, or after
  /// ``resume()``. So an external commit may reach the observers of a collection in more than one element. <doc:Suspension>
  /// lists what each store holds, and when.
  ///
  /// Suspensions are counted: a store that is suspended twice is resumed by two calls of ``resume()``.
  ///
  /// The default implementation does nothing.
  ///
  /// - Complexity: O(1), after the calls in progress.
  func suspend() async

  /// Ends a suspension.
  ///
  /// After the last suspension, an observed store watches its medium again. Observers receive the newest external value
  /// of each key that has changed meanwhile, once, and never one that is older than what they have. If the watch can't
  /// begin, ``events`` reports the error, and the next observer tries again. Without a suspension, the call does
  /// nothing.
  ///
  /// The default implementation does nothing.
  ///
  /// - Complexity: O(1), plus reading the values of all observed keys.
  func resume() async

  /// Events that concern the owner of the store, whether or not a call fails because of them.
  ///
  /// A subscriber receives the last few events first.
  var events: MulticastStream<StoreEvent, Never> { get }
}

extension KeyValueStore {
  /// Throws, because this implementation doesn't know where the store keeps its data.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    throw .eraseFailed(.erasureUnsupported(by: Self.self))
  }

  /// Creates a feed that observes each part by itself.
  public func feed() async -> any StoreFeed { ObservedFeed(of: self) }

  /// Returns `false`.
  public var feedIsWhole: Bool { false }

  /// Returns ``StoreLockResult/unsupported``.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult { .unsupported }

  /// Does nothing.
  public func suspend() async {}

  /// Does nothing.
  public func resume() async {}
}
