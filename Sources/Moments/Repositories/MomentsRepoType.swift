public import Repository

/// The single source of truth for timelines: every screen reads from it, and every change goes through it.
///
/// Observe a timeline with `for await`. Fetch a newer one with ``getMoments(userID:)``, and change it with
/// ``updateLike(isLiked:momentID:fromUserID:)``. These methods return no timeline, because every observer receives the
/// result.
///
/// The streams, such as ``momentsDetails``, don't keep the repository alive, and finish when it is released. If the
/// calling task is cancelled, a call ends and throws ``MomentsRepoError/cancelled``.
///
/// ## Names
///
/// In each feature of the package, the first word of a method's name says how the method affects the streams:
/// - `get…`, `refresh…`, `reload…`, `loadMore…` and `update…` fetch or change a value, and the streams emit it.
/// - `fetch…` returns a value to the caller only. No stream emits it.
/// - `perform…` performs an action, such as a sign-in. The streams emit the states that the action passes through.
public protocol MomentsRepoType: Sendable {
  /// The saved and changed timelines of all users: first the newest one, then later ones in order, each at most once.
  ///
  /// The newest timeline is the one that was saved or changed last, of those that the repository has read. If it isn't
  /// known, because the repository hasn't read any yet or that one was removed or evicted, an observer first receives
  /// all stored timelines instead, the newest one last. If the store is empty, an observer waits for the first save.
  ///
  /// Nothing is dropped, however slow the observer is, but changes that the repository processes together may arrive as
  /// one. An observer that needs only the newest timeline uses `buffering(.latest)`.
  var momentsDetails: ObservedValues<MomentsDetails> { get }

  /// Returns the saved and changed timelines of one user, as ``momentsDetails`` does for all users.
  func momentsDetails(userID: String) -> ObservedValues<MomentsDetails>

  /// Returns the loading states of a user's timeline: the current state first, then the newest after each change.
  ///
  /// The first state is sent when the store was read, so `idle` says that no timeline is stored. If the store
  /// can't be read, or the user has signed out, the first state is a failure.
  ///
  /// A load that begins, fails or is cancelled doesn't remove the timeline from the state.
  func loadState(userID: String) -> ObservedValues<MomentsLoadState>

  /// Returns the pending likes of a user: the current ones first, then the newest after each change.
  ///
  /// A like is pending until a stored timeline contains it, or until it is rolled back. Each element maps the ids of
  /// the moments with a pending like to whether the user likes them.
  func pendingLikes(userID: String) -> ObservedValues<[String: Bool]>

  /// Fetches the complete timeline of a user with one request, and saves it once.
  ///
  /// Callers that fetch the same timeline at the same time share the request. A further request is sent only if a like
  /// is confirmed or another process stores the timeline during the request, because the reply may then be outdated.
  ///
  /// When the call returns, the timeline is durable, and a new observer receives it.
  ///
  /// - Throws: A ``MomentsRepoError``, whose documentation describes the effect on the stored timeline.
  func getMoments(userID: String) async throws(MomentsRepoError)

  /// Fetches the timeline of a user unless the stored one is fresh.
  ///
  /// - Throws: The errors of ``getMoments(userID:)``.
  func refreshMoments(userID: String) async throws(MomentsRepoError)

  /// Fetches the newest page of a user's timeline, and joins it to the stored pages without a gap.
  ///
  /// - Throws: A ``MomentsRepoError``; the stored timeline is unchanged, with the exceptions that `StoreError`
  ///   describes.
  func reloadMoments(userID: String) async throws(MomentsRepoError)

  /// Fetches the page after the last stored moment of a user's timeline, and appends it without duplicates.
  ///
  /// Fetches nothing if the stored timeline is complete, and the newest page if no timeline is stored. If the server
  /// refuses the page because the last stored moment was deleted, call ``reloadMoments(userID:)`` before the next
  /// attempt.
  ///
  /// - Throws: A ``MomentsRepoError``; the stored timeline is unchanged, with the exceptions that `StoreError`
  ///   describes.
  func loadMoreMoments(userID: String) async throws(MomentsRepoError)

  /// Sets whether a user likes a moment.
  ///
  /// Observers see the like at once. It is sent as soon as the server can be reached.
  ///
  /// - Returns: ``MomentLikeOutcome/confirmed`` if the server has the like, otherwise ``MomentLikeOutcome/queued``.
  /// - Throws: A ``MomentsRepoError``. If the server refuses the like or the store can't write it, the like is rolled
  ///   back. ``MomentsRepoError/cancelled`` is thrown if the calling task is cancelled, which doesn't cancel the like.
  @discardableResult
  func updateLike(
    isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(MomentsRepoError) -> MomentLikeOutcome
}
