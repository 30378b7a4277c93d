internal import DataStore
public import Multicast

/// The repository of timelines: fetches them, keeps them, and broadcasts what is kept.
///
/// A value goes one way: the server's reply → the store → the store's changes → the observers. Nothing else reaches an
/// observer, so what is on the screens is what is stored, whichever screen, or whatever other part of the app, caused
/// the change.
///
/// - **Start**: What was stored before the repository existed reaches observers first.
/// - **Ordering**: Observers see all saves in the order of the store, each once.
/// - **Lifetime**: Streams do not keep the repository alive. They finish when it is released.
public actor MomentsRepo: MomentsRepoType {
  private let persistentDataStore: any PersistentDataStoreType
  private let getMomentsByUserIDSession: any GetMomentsByUserIDSessionType
  private let updateMomentLikeSession: any UpdateMomentLikeSessionType
  private let broadcast = MomentsBroadcast()
  private var following: Task<Void, Never>

  /// Creates a repository on a data store and two sessions, and starts to broadcast what is stored.
  public init(
    persistentDataStore: any PersistentDataStoreType,
    getMomentsByUserIDSession: any GetMomentsByUserIDSessionType,
    updateMomentLikeSession: any UpdateMomentLikeSessionType
  ) {
    self.persistentDataStore = persistentDataStore
    self.getMomentsByUserIDSession = getMomentsByUserIDSession
    self.updateMomentLikeSession = updateMomentLikeSession
    following = broadcast.startFollowing(persistentDataStore)
  }

  deinit {
    following.cancel()
  }

  /// Every timeline that is saved, of any user: the newest first for a new observer, then each one once, in order.
  ///
  /// An observer of an empty store waits for the first save. Nothing is dropped however slow the observer; where only
  /// the newest counts, say so by `buffering(.latest)`.
  public nonisolated var momentsDetails: MulticastStream<MomentsDetails, Never> {
    broadcast.momentsDetails
  }

  /// As ``momentsDetails``, of one user.
  public nonisolated func momentsDetails(userID: String) -> MulticastStream<MomentsDetails, Never> {
    broadcast.momentsDetails(userID: userID)
  }

  /// Fetches the timeline of a user: one request, one save.
  ///
  /// When it returns, the timeline is durable, and an observer that comes now gets it.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  public func getMoments(userID: String) async throws(MomentsRepoError) {
    let details: MomentsDetails
    do {
      details = try await getMomentsByUserIDSession.getMoments(userID: userID)
    } catch {
      throw MomentsRepoError(error)
    }
    try await save(details, userID: userID)
  }

  /// Sets whether a user likes a moment, and saves the timeline the server answers with.
  ///
  /// When it returns, the timeline is durable, and an observer that comes now gets it.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  public func updateLike(
    isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(MomentsRepoError) {
    let details: MomentsDetails
    do {
      details = try await updateMomentLikeSession.updateLike(isLiked, momentID: momentID, fromUserID: userID)
    } catch {
      throw MomentsRepoError(error)
    }
    try await save(details, userID: userID)
  }

  /// Saves, and waits until the store's changes have brought the timeline to the observers.
  private func save(_ details: MomentsDetails, userID: String) async throws(MomentsRepoError) {
    do throws(StoreError) {
      let stored = try await persistentDataStore.save(momentsDetails: details, userID: userID)
      if broadcast.hasFailed { following = broadcast.startFollowing(persistentDataStore) }
      if try await broadcast.reaches(stored.revision) { return }
    } catch {
      throw .store(error)
    }
    throw .cancelled
  }
}
