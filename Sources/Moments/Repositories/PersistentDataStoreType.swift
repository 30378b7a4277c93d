public import DataStore

/// A store that keeps the timelines of all users, each under its own key, and broadcasts their changes.
///
/// A ``MomentsRepo`` keeps its timelines in such a store, and beside them the likes that the server doesn't have yet.
/// ``PersistentDataStore`` turns any `KeyValueStore` into one. To change the database, pass another store to the
/// repository's initializer; no other code changes.
public protocol PersistentDataStoreType: KeyValueStore {
  /// Returns the stored timelines and a subscription to every later change, with no gap between the two.
  ///
  /// - Throws: A `StoreError`. A single timeline that can't be read is usually left out and reported instead, as
  ///   `KeyValueStore.observe(collection:as:)` describes.
  func observeMomentsDetails() async throws(StoreError) -> StoreObservation<MomentsDetails>

  /// Returns the stored timeline of a user with the time at which it was saved, or `nil` if none is stored.
  ///
  /// - Throws: A `StoreError`.
  func momentsDetails(userID: String) async throws(StoreError) -> StoredValue<MomentsDetails>?

  /// Saves the timeline of a user, and sends it to every observer.
  ///
  /// When the call returns, the timeline is durable.
  ///
  /// - Returns: The stored timeline with its time, revision and tag.
  /// - Throws: A `StoreError`. The new timeline isn't sent, and the old one is intact, except in the cases that
  ///   `KeyValueStore.save(_:for:)` describes.
  @discardableResult
  func save(
    momentsDetails: MomentsDetails, userID: String
  ) async throws(StoreError) -> StoredValue<MomentsDetails>

  /// Checks that the store accepts a user's id as a key.
  ///
  /// A ``MomentsRepo`` checks the id before it fetches a timeline or queues a like. The default implementation accepts
  /// every id.
  ///
  /// - Throws: `StoreError.invalidKey(_:)`.
  func validate(userID: String) throws(StoreError)

  /// Removes the timeline of a user.
  ///
  /// When a user signs out, call ``MomentsRepo/signOut(userID:unsent:)`` instead, because the store may keep bytes of a
  /// removed timeline.
  ///
  /// - Throws: A `StoreError`. The timeline is then still stored, except in the cases that `KeyValueStore.remove(_:)`
  ///   describes.
  func removeMomentsDetails(userID: String) async throws(StoreError)
}

extension PersistentDataStoreType {
  /// Accepts every id.
  public func validate(userID: String) throws(StoreError) {}
}
