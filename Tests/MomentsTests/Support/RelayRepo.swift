import Moments
import Multicast
import Repository

/// A repository whose streams a test feeds, and whose methods do nothing, except that each like calls a closure.
struct RelayRepo: MomentsRepoType {
  let details = MulticastRelay<MomentsDetails>(replay: 1, buffering: .unbounded)
  let loadStates = CurrentValueRelay(MomentsLoadState.idle)
  let pending = CurrentValueRelay<[String: Bool]>([:])
  /// The closure that ``updateLike(isLiked:momentID:fromUserID:)`` calls.
  var onLike: @Sendable (_ isLiked: Bool) -> Void = { _ in }

  var momentsDetails: ObservedValues<MomentsDetails> { ObservedValues(details.stream) }

  func momentsDetails(userID: String) -> ObservedValues<MomentsDetails> { ObservedValues(details.stream) }

  func loadState(userID: String) -> ObservedValues<MomentsLoadState> { ObservedValues(loadStates.stream) }

  func pendingLikes(userID: String) -> ObservedValues<[String: Bool]> { ObservedValues(pending.stream) }

  func getMoments(userID: String) async throws(MomentsRepoError) {}

  func refreshMoments(userID: String) async throws(MomentsRepoError) {}

  func reloadMoments(userID: String) async throws(MomentsRepoError) {}

  func loadMoreMoments(userID: String) async throws(MomentsRepoError) {}

  func updateLike(
    isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(MomentsRepoError) -> MomentLikeOutcome {
    onLike(isLiked)
    return .confirmed
  }
}
