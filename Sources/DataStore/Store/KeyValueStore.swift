public import Multicast

/// Keeps `Codable` values by collection and id, durably, several as one, and broadcasts their changes.
///
/// Program against this protocol, and name a store where the app is put together: ``FileStore``,
/// ``UserDefaultsStore``, ``InMemoryStore`` or one of your own. Each keeps the same promises, which the conformance
/// checks in `DataStoreTesting` prove.
///
/// - **Durability**: A change survives the end of the process once its call has returned, as far as the store's medium
///   survives. A call that threw changed nothing.
/// - **Atomicity**: A commit is made whole or not at all, at any instant and in every process.
/// - **Ordering**: Changes are made in the order the calls arrive and are sent in the same order, each once, after they
///   are durable and before the call returns. All keys share one order; ``StoredValue/revision`` counts it.
/// - **Group commit**: Saves and commits that arrive while the store writes are written together if the medium can do
///   that. Of several saves of one key only the last may be written; each returns when its value, or a later one, is
///   durable, and each is sent.
/// - **External changes**, such as those of another process in the same place, are noticed by the next call for the key
///   at the latest, and sent to observers once, with a revision of their own. Whether they are noticed without a call
///   depends on the medium. The last save wins unless a precondition says otherwise. The store's own changes don't come
///   back as external ones.
/// - **Schemas**: A value of an older schema is migrated when it is read; see ``VersionedValue``. A value of a future
///   schema is left untouched and reported.
/// - **Corrupt values** never stop a program: their bytes are quarantined, ``events`` says where, and every stream goes
///   on with the next good save.
/// - **Lifetime**: Streams don't keep a store alive. They finish when it is released.
/// - **Cancellation** doesn't interrupt a call: a save that began runs to completion and reports its result.
public protocol KeyValueStore: Sendable {
  /// Returns the stored value of a key, or `nil`.
  ///
  /// - Throws: ``StoreError/undecodable(_:movedTo:reason:)`` once for corrupt bytes, unless ``events`` reported them
  ///   before, and returns `nil` from then on; ``StoreError/newerFormat(_:found:supported:)`` each time for a value of a
  ///   future format or schema; ``StoreError/migrationFailed(_:from:reason:)`` each time for a value that can't be
  ///   migrated; ``StoreError/damaged(movedTo:reason:)`` once for a store that was corrupt as a whole; or another
  ///   ``StoreError``.
  func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>?

  /// Stores a value, and sends it to every observer once it is durable.
  ///
  /// - Returns: What was stored, with its time, revision and tag.
  /// - Throws: A ``StoreError``; then the old value is intact and nothing is sent.
  @discardableResult
  func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>

  /// Removes the stored value of a key, and notifies every observer.
  ///
  /// Where nothing is stored, nothing happens and nothing is sent. Corrupt bytes are quarantined, which ``events``
  /// reports, and not deleted.
  ///
  /// - Throws: A ``StoreError``; then the value is still there and nothing is sent.
  func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError)

  /// Removes all values of a collection in one commit, and notifies every observer.
  ///
  /// - Throws: A ``StoreError``, also if one of the values is of a future format; then all values are still there.
  /// - Complexity: O(*n*), where *n* is the number of values in the store, as their names are listed.
  func removeAll(in collection: String) async throws(StoreError)

  /// Makes several saves and removals as one: all or none, at any instant, in every process.
  ///
  /// Observers of a collection get its changes as one element; see ``StoreObservation/changes``. Values that are read by
  /// one `observe` are of one instant. Two `load` calls are two instants, but a later one never returns older values
  /// than an earlier one.
  ///
  /// - Returns: The revision and the tag of the commit.
  /// - Throws: ``StoreError/preconditionFailed(_:)`` for the first precondition that doesn't hold, or another
  ///   ``StoreError``; then nothing changed and nothing is sent.
  @discardableResult
  func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit

  /// The changes of one key: each subscriber gets the stored value first, if there is one, then every later change.
  ///
  /// Nothing is dropped, however slow a subscriber is. A subscriber that needs only the newest value uses
  /// `buffering(.latest)`.
  ///
  /// - Throws: A ``StoreError``, but never for bytes that can't be decoded or migrated, nor, once the key is observed, for
  ///   a value of a future format: for those see ``events``.
  func changes<Value>(of key: StoreKey<Value>) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never>

  /// The values of a collection, and all their later changes.
  ///
  /// Reading and registration are one step: nothing is missing between the two, and nothing comes twice.
  ///
  /// - Parameters:
  ///   - collection: The collection.
  ///   - type: The type of its values.
  /// - Throws: A ``StoreError``, but never for single values that can't be decoded, migrated or read, or that are of a
  ///   future format: those are left out, and ``events`` reports them.
  /// - Complexity: O(*n*) for the *n* names in the store, and the decoding of the collection's values.
  func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable

  /// Erases what is kept of some keys, so that nothing of it is left: for the data of a user who has signed out.
  ///
  /// A removal keeps what can't be decoded, and may leave bytes of a value where a database reuses them later. This call
  /// deletes values in whatever state, of a future format too, and what was quarantined, and the place keeps no byte of
  /// them. What a drive keeps of deleted files is the system's. ``events`` forgets what it told.
  ///
  /// Observers are notified, in every process, as of removals. A commit that is being made in another process may store
  /// what was just erased; preconditions prevent that. What that process has written for it so far, it deletes itself, and
  /// if it ends first, the next one does.
  ///
  /// The default implementation throws.
  ///
  /// - Parameter isErased: Whether to erase an item. Called by the store, which waits for it, and in the middle of a
  ///   transaction: it takes little time, and calls no store.
  /// - Throws: A ``StoreError``; then some items may be erased. Call again.
  /// - Complexity: O(*n*) for the names in the store. A database is written anew.
  func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError)

  /// Locks a name, so that one of several processes can do what only one may do.
  ///
  /// A lock has no effect on any other call. It ends when it is released, or with the process: a process that is killed
  /// leaves none behind.
  ///
  /// The default implementation returns ``StoreLockResult/unsupported``.
  ///
  /// - Parameter name: The name, which may be as long as a collection's.
  /// - Throws: ``StoreError/invalidKey(_:)`` for a name that is empty or too long, or another ``StoreError``.
  func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult

  /// What the store's owner should know although no call failed for it. A subscriber gets the last few events first.
  var events: MulticastStream<StoreEvent, Never> { get }
}

extension KeyValueStore {
  /// Throws, because it doesn't know what the store keeps.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    throw .removeFailed(.erasureUnsupported(by: Self.self))
  }

  /// Knows no locks.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult { .unsupported }
}
