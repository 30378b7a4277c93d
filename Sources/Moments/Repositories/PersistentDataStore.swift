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

  /// The stored timeline of a user, with the time at which it was saved; nil when there is none.
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

  /// What the store has to tell although no call failed for it, such as bytes that were moved aside.
  public var events: MulticastStream<StoreEvent, Never> { store.events }

  /// The store that this one keeps its timelines in.
  public var keyValueStore: any KeyValueStore { store }
}

/// Keeps timelines in `UserDefaults`.
public typealias UserDefaultsPersistentDataStore = PersistentDataStore<UserDefaultsStore>
