public import DataStore

/// A data store that keeps its timelines in any `KeyValueStore`.
///
/// Each timeline has its own key: the id of its user, in the collection `moments-details`.
public struct PersistentDataStore<Store: KeyValueStore>: PersistentDataStoreType, WrappingStore {
  private static var collection: String { "moments-details" }

  package let base: Store

  /// Creates a data store.
  ///
  /// - Parameter store: The store that keeps the timelines.
  public init(_ store: Store) {
    base = store
  }

  private func key(userID: String) -> StoreKey<MomentsDetails> {
    StoreKey(Self.collection, id: userID)
  }

  /// Returns the stored timelines and a subscription to every later change, with no gap between the two.
  public func observeMomentsDetails() async throws(StoreError) -> StoreObservation<MomentsDetails> {
    try await base.observe(collection: Self.collection, as: MomentsDetails.self)
  }

  /// Returns the stored timeline of a user with the time at which it was saved, or `nil` if none is stored.
  public func momentsDetails(userID: String) async throws(StoreError) -> StoredValue<MomentsDetails>? {
    try await base.load(key(userID: userID))
  }

  /// Saves the timeline of a user, and sends it to every observer.
  @discardableResult
  public func save(
    momentsDetails: MomentsDetails, userID: String
  ) async throws(StoreError) -> StoredValue<MomentsDetails> {
    try await base.save(momentsDetails, for: key(userID: userID))
  }

  /// Checks that the store accepts a user's id as a key.
  ///
  /// - Throws: `StoreError.invalidKey(_:)` if the id is empty or too long.
  public func validate(userID: String) throws(StoreError) {
    try key(userID: userID).validate()
  }

  /// Removes the timeline of a user.
  public func removeMomentsDetails(userID: String) async throws(StoreError) {
    try await base.remove(key(userID: userID))
  }
}

/// A data store that keeps its timelines in `UserDefaults`.
public typealias UserDefaultsPersistentDataStore = PersistentDataStore<UserDefaultsStore>
