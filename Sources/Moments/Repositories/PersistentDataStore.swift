public import DataStore
public import Multicast

/// Keeps timelines in any `KeyValueStore`.
///
/// What is read and what is written is named in one place, here, and each user has a key of their own.
public struct PersistentDataStore<Store: KeyValueStore>: PersistentDataStoreType {
  private static var collection: String { "moments-details" }

  private let store: Store

  /// Creates a data store that keeps its timelines in `store`.
  public init(_ store: Store) {
    self.store = store
  }

  private func key(userID: String) -> StoreKey<MomentsDetails> {
    StoreKey(Self.collection, id: userID)
  }

  /// The timelines there are, and every later change of any of them, without a gap between the two.
  ///
  /// - Throws: `StoreError`, but never for bytes that could not be decoded: for those see ``events``.
  public func observeMomentsDetails() async throws(StoreError) -> StoreObservation<MomentsDetails> {
    try await store.observe(collection: Self.collection, as: MomentsDetails.self)
  }

  /// The stored timeline of a user, with the time at which it was saved; `nil` if there is no timeline.
  ///
  /// - Throws: `StoreError`.
  public func momentsDetails(userID: String) async throws(StoreError) -> StoredValue<MomentsDetails>? {
    try await store.load(key(userID: userID))
  }

  /// Saves the timeline of a user and broadcasts it.
  ///
  /// When this returns, it is durable.
  ///
  /// - Returns: What was stored, with its place in the order of all changes.
  /// - Throws: `StoreError`; then the old timeline is intact and nothing is broadcast.
  @discardableResult
  public func save(
    momentsDetails: MomentsDetails, userID: String
  ) async throws(StoreError) -> StoredValue<MomentsDetails> {
    try await store.save(momentsDetails, for: key(userID: userID))
  }

  /// Checks that the timeline of a user can be kept.
  ///
  /// - Throws: `StoreError.invalidKey(_:)` for an empty id and for one that is too long.
  public func validate(userID: String) throws(StoreError) {
    try key(userID: userID).validate()
  }

  /// Removes the timeline of a user, for example when the user logs out.
  ///
  /// - Throws: `StoreError`; then the timeline is still there.
  public func removeMomentsDetails(userID: String) async throws(StoreError) {
    try await store.remove(key(userID: userID))
  }

}

extension PersistentDataStore {
  /// Returns the stored value of a key, or `nil`.
  public func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    try await store.load(key)
  }

  /// Stores a value, and sends it to every observer once it is durable.
  @discardableResult
  public func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value> {
    try await store.save(value, for: key)
  }

  /// Removes the stored value of a key, and notifies every observer.
  public func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    try await store.remove(key)
  }

  /// Removes all values of a collection in one commit, and notifies every observer.
  public func removeAll(in collection: String) async throws(StoreError) {
    try await store.removeAll(in: collection)
  }

  /// Makes several saves and removals as one: all or none, at any instant, in every process.
  @discardableResult
  public func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    try await store.commit(batch)
  }

  /// The changes of one key: each subscriber gets the stored value first, if there is one, then every later change.
  public func changes<Value>(
    of key: StoreKey<Value>
  ) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    try await store.changes(of: key)
  }

  /// The values of a collection, and all their later changes.
  public func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    try await store.observe(collection: collection, as: type)
  }

  /// Erases what is kept of some keys, so that nothing of it is left.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await store.erase(where: isErased)
  }

  /// Locks a name, so that one of several processes can do what only one may do.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    try await store.acquireLock(name)
  }

  /// What the store's owner should know although no call failed for it.
  public var events: MulticastStream<StoreEvent, Never> { store.events }
}

/// Keeps timelines in `UserDefaults`.
public typealias UserDefaultsPersistentDataStore = PersistentDataStore<UserDefaultsStore>
