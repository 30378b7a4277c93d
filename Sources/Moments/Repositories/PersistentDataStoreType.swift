public import DataStore

/// A store that keeps the timelines of all users, each under its own key, and broadcasts their changes.
///
/// A ``MomentsRepo`` sits on one, and keeps the likes beside them that the server does not have yet. ``PersistentDataStore`` makes one of any `KeyValueStore`, so to change the database is
/// to name another store where the app is put together, and nowhere else.
public protocol PersistentDataStoreType: KeyValueStore {
  /// The timelines there are, and every later change of any of them, without a gap between the two.
  ///
  /// - Throws: `StoreError`, but never for bytes that could not be decoded: for those see ``events``.
  func observeMomentsDetails() async throws(StoreError) -> StoreObservation<MomentsDetails>

  /// The stored timeline of a user, with the time at which it was saved; `nil` if there is no timeline.
  ///
  /// - Throws: `StoreError`.
  func momentsDetails(userID: String) async throws(StoreError) -> StoredValue<MomentsDetails>?

  /// Saves the timeline of a user and broadcasts it. When this returns, it is durable.
  ///
  /// - Returns: What was stored, with its place in the order of all changes.
  /// - Throws: `StoreError`; then the old timeline is intact and nothing is broadcast.
  @discardableResult
  func save(
    momentsDetails: MomentsDetails, userID: String
  ) async throws(StoreError) -> StoredValue<MomentsDetails>

  /// Checks that the timeline of a user can be kept, before a request or a like depends on it.
  ///
  /// Without an implementation every id is valid.
  ///
  /// - Throws: `StoreError.invalidKey(_:)`.
  func validate(userID: String) throws(StoreError)

  /// Removes the timeline of a user, for example when the user logs out.
  ///
  /// - Throws: `StoreError`; then the timeline is still there.
  func removeMomentsDetails(userID: String) async throws(StoreError)
}

extension PersistentDataStoreType {
  /// Takes every id for valid.
  public func validate(userID: String) throws(StoreError) {}
}
