public import Repository

/// The one source of truth for timelines: every screen reads from it, and every change goes through it.
///
/// Observe a timeline by `for await`. Ask for a newer one by ``getMoments(userID:)``; change it by
/// ``updateLike(isLiked:momentID:fromUserID:)``. The functions return no timeline: whatever they bring arrives at every
/// observer.
///
/// ## Names
///
/// What a function's name begins with says what it does to the streams, here and in every repository:
/// - `get…`, `refresh…`, `reload…`, `loadMore…` and `update…` return no value; what they bring, the streams emit.
/// - `fetch…` returns a value, and no stream emits anything.
/// - `perform…` acts on something else, and neither returns a value nor makes a stream emit.
public protocol MomentsRepoType: Sendable {
  /// Every timeline that is saved or edited, of any user: the newest first for a new observer, then each one once, in
  /// order.
  ///
  /// An observer of an empty store waits for the first save. Nothing is dropped however slow the observer; where only
  /// the newest counts, say so by `buffering(.latest)`.
  var momentsDetails: ObservedValues<MomentsDetails> { get }

  /// As ``momentsDetails``, of one user.
  func momentsDetails(userID: String) -> ObservedValues<MomentsDetails>

  /// How a user's timeline is being loaded: the present state first, then the newest after each change.
  ///
  /// A timeline that is there stays in the state whatever becomes of a load.
  func loadState(userID: String) -> ObservedValues<MomentsLoadState>

  /// The moments on a user's timeline whose likes no stored timeline has yet, and whether they are liked: the present
  /// ones first, then the newest after each change.
  func pendingLikes(userID: String) -> ObservedValues<[String: Bool]>

  /// Fetches the timeline of a user: one request, one save.
  ///
  /// Callers that ask for the same user at the same time share the request.
  /// Where a like was confirmed meanwhile, or another process stored a timeline, the reply may be older: then the timeline
  /// is asked for once more.
  ///
  /// When it returns, the timeline is durable, and an observer that comes now gets it.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  func getMoments(userID: String) async throws(MomentsRepoError)

  /// Fetches the timeline of a user unless the stored one is fresh.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  func refreshMoments(userID: String) async throws(MomentsRepoError)

  /// Fetches the newest page of the timeline of a user, and joins it to what is stored, so that there is no gap.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  func reloadMoments(userID: String) async throws(MomentsRepoError)

  /// Fetches the page behind the last stored moment of the timeline of a user, and appends it, without duplicates.
  ///
  /// Where the stored timeline is whole, nothing is asked for; where nothing is stored, the newest page is. Where the
  /// server refuses the page, as the moment before it is gone, ``reloadMoments(userID:)`` leads on from there.
  ///
  /// - Throws: ``MomentsRepoError``; then the stored timeline is what it was.
  func loadMoreMoments(userID: String) async throws(MomentsRepoError)

  /// Sets whether a user likes a moment: observers see it at once, and the server has it as soon as it can be reached.
  ///
  /// - Returns: Whether the server has it, or it is durably queued.
  /// - Throws: ``MomentsRepoError``: the server refused, or the like could not be written down, and observers see it
  ///   no more; or ``MomentsRepoError/cancelled``, which ends the call and not the like.
  @discardableResult
  func updateLike(
    isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(MomentsRepoError) -> MomentLikeOutcome
}
