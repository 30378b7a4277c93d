import Moments
import Multicast
import Repository

/// A repository whose streams a test feeds, and whose functions do nothing.
struct RelayRepo: MomentsRepoType {
  let details = MulticastRelay<MomentsDetails>(replay: 1, buffering: .unbounded)
  let loadStates = CurrentValueRelay(MomentsLoadState.idle)
  let pending = CurrentValueRelay<[String: Bool]>([:])

  var momentsDetails: MulticastStream<MomentsDetails, Never> { details.stream }

  func momentsDetails(userID: String) -> MulticastStream<MomentsDetails, Never> { details.stream }

  func loadState(userID: String) -> MulticastStream<MomentsLoadState, Never> { loadStates.stream }

  func pendingLikes(userID: String) -> MulticastStream<[String: Bool], Never> { pending.stream }

  func getMoments(userID: String) async throws(MomentsRepoError) {}

  func refreshMoments(userID: String) async throws(MomentsRepoError) {}

  func reloadMoments(userID: String) async throws(MomentsRepoError) {}

  func loadMoreMoments(userID: String) async throws(MomentsRepoError) {}

  func updateLike(
    isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(MomentsRepoError) -> MomentLikeOutcome { .confirmed }
}
