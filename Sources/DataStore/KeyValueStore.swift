public import Multicast

/// Keeps a value per key, durably, and broadcasts its changes.
///
/// Program against this protocol, and name a store where the app is put together: ``FileStore``,
/// ``UserDefaultsStore``, ``InMemoryStore`` or one of your own. Each keeps the same promises, which the conformance
/// checks in `MomentsTesting` prove.
///
/// - **Durability**: A save or a removal that returned survives the end of the process, as far as the store's medium
///   does. One that threw changed nothing.
/// - **Ordering**: Changes are made in the order the calls arrive and sent in the same order, each once, after they
///   are durable and before the call returns. All keys share one order; ``StoredValue/revision`` counts it.
/// - **Bursts**: Saves of one key that arrive while the store writes may be written as one. The last is what is written;
///   each returns when its value, or that later one, is durable, and each is sent.
/// - **Others** in the same place, such as another process: what they change is seen by the next call that looks, and
///   sent to observers once, as a change with a revision of its own; whether also without a call depends on the
///   medium. Who saves last wins. The store's own changes do not come back as those of others.
/// - **Schemas**: A value of an older schema is migrated when it is read; see ``VersionedValue``. A value of a newer one
///   is left untouched, and told; only one that another stores in the very instant of a save or a removal may fall to it.
/// - **Undecodable values** never stop a program: their bytes are moved aside, ``events`` says where, and every stream
///   goes on with the next good save.
/// - **Lifetime**: Streams do not keep a store alive. They finish when it is released.
public protocol KeyValueStore: Sendable {
  /// What is stored for a key; nil when nothing is.
  ///
  /// - Throws: ``StoreError/undecodable(_:movedTo:reason:)`` once for bytes that are not a value, unless ``events`` told
  ///   of them before, and nil from then on; ``StoreError/newerFormat(_:found:supported:)`` each time for the value of a
  ///   newer program; ``StoreError/migrationFailed(_:from:reason:)`` each time for one that could not be migrated;
  ///   ``StoreError/damaged(movedTo:reason:)`` once where a store was damaged as a whole; or another ``StoreError``.
  func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>?

  /// Stores a value, and sends it to every observer once it is durable.
  ///
  /// Cancelling the calling task does not take the save back.
  ///
  /// - Returns: What was stored, with its time and revision.
  /// - Throws: A ``StoreError``; then the old value is intact and nothing is sent.
  @discardableResult
  func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>

  /// Removes what is stored for a key, and tells every observer.
  ///
  /// Where nothing is stored, nothing happens and nothing is sent. Bytes that are not a value are moved aside, which
  /// ``events`` tells, and not deleted.
  ///
  /// - Throws: A ``StoreError``; then the value is still there and nothing is sent.
  func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError)

  /// The changes of one key: each reader gets what is stored first, if anything is, then every later change.
  ///
  /// Nothing is dropped, however slow a reader is; a reader that needs only the newest says so by
  /// `buffering(.latest)`.
  ///
  /// - Throws: A ``StoreError``, but never for bytes that cannot be decoded or migrated, nor, once the key is observed,
  ///   for the value of a newer program: for those see ``events``.
  func changes<Value>(of key: StoreKey<Value>) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never>

  /// Every user's value of one name, the value that belongs to no user among them, and all their later changes.
  ///
  /// What is stored and the registration for changes are taken in one step: nothing is missing between the two, and
  /// nothing comes twice.
  ///
  /// - Parameters:
  ///   - name: What is stored.
  ///   - type: The type of the values.
  /// - Throws: A ``StoreError``, but never for bytes that cannot be decoded or migrated, or the values of a newer program:
  ///   for those see ``events``.
  func observe<Value>(
    everyUserOf name: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable

  /// What the store's owner should know although no call failed for it. A reader gets the last few events first.
  var events: MulticastStream<StoreEvent, Never> { get }
}
