public import Multicast

/// The one source of truth for timelines: every screen reads from it, and every change goes through it.
///
/// Follow a timeline by `for await`; ask for news by ``getMoments(userID:)``; change it by
/// ``updateLike(isLiked:momentID:fromUserID:)``. The functions return no timeline: whatever they bring arrives at every
/// observer.
public protocol MomentsRepoType: Sendable {
  /// Every timeline that is saved, of any user: the newest first for a new observer, then each one once, in order.
  ///
  /// An observer of an empty store waits for the first save. Nothing is dropped however slow the observer; where only
  /// the newest counts, say so by `buffering(.latest)`.
  var momentsDetails: MulticastStream<MomentsDetails, Never> { get }

  /// As ``momentsDetails``, of one user.
  func momentsDetails(userID: String) -> MulticastStream<MomentsDetails, Never>

  /// Fetches the timeline of a user: one request, one save.
  ///
  /// When it returns, the timeline is durable, and an observer that comes now gets it.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  func getMoments(userID: String) async throws(MomentsRepoError)

  /// Sets whether a user likes a moment, and saves the timeline the server answers with.
  ///
  /// When it returns, the timeline is durable, and an observer that comes now gets it.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  func updateLike(isLiked: Bool, momentID: String, fromUserID userID: String) async throws(MomentsRepoError)
}
