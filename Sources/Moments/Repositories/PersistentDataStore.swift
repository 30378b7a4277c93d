public import DataStore
public import Multicast

/// A data store that keeps its timelines in any `KeyValueStore`.
///
/// Timelines are read and written under the same key, which contains the id of the user.
public struct PersistentDataStore<Store: KeyValueStore>: PersistentDataStoreType {
  private static var collection: String { "moments-details" }

  private let store: Store

  /// Creates a data store.
  ///
  /// - Parameter store: The store that keeps the timelines.
  public init(_ store: Store) {
    self.store = store
  }

  private func key(userID: String) -> StoreKey<MomentsDetails> {
    StoreKey(Self.collection, id: userID)
  }

  /// Returns the stored timelines and a subscription to every later change, with no gap between the two.
  public func observeMomentsDetails() async throws(StoreError) -> StoreObservation<MomentsDetails> {
    try await store.observe(collection: Self.collection, as: MomentsDetails.self)
  }

  /// Returns the stored timeline of a user with the time at which it was saved, or `nil` if none is stored.
  public func momentsDetails(userID: String) async throws(StoreError) -> StoredValue<MomentsDetails>? {
    try await store.load(key(userID: userID))
  }

  /// Saves the timeline of a user, and sends it to every observer.
  @discardableResult
  public func save(
    momentsDetails: MomentsDetails, userID: String
  ) async throws(StoreError) -> StoredValue<MomentsDetails> {
    try await store.save(momentsDetails, for: key(userID: userID))
  }

  /// Checks that the store accepts a user's id as a key.
  ///
  /// - Throws: `StoreError.invalidKey(_:)` if the id is empty or too long.
  public func validate(userID: String) throws(StoreError) {
    try key(userID: userID).validate()
  }

  /// Removes the timeline of a user.
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

  /// Makes several saves and removals as one: all or none.
  @discardableResult
  public func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    try await store.commit(batch)
  }

  /// Returns the changes of one key: the stored value first, if there is one, then every later change.
  public func changes<Value>(
    of key: StoreKey<Value>
  ) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    try await store.changes(of: key)
  }

  /// Returns the values of a collection and a subscription to their later changes.
  public func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    try await store.observe(collection: collection, as: type)
  }

  /// Erases all data of the selected keys.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await store.erase(where: isErased)
  }

  /// Acquires the lock of a name.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    try await store.acquireLock(name)
  }

  /// The events of the store that no call reports.
  public var events: MulticastStream<StoreEvent, Never> { store.events }
}

/// A data store that keeps its timelines in `UserDefaults`.
public typealias UserDefaultsPersistentDataStore = PersistentDataStore<UserDefaultsStore>
