/// What became of a like, as ``MomentsRepoType/updateLike(isLiked:momentID:fromUserID:)`` tells it.
public enum MomentLikeOutcome: Hashable, Sendable {
  /// The server has it, and its answer is stored.
  case confirmed

  /// The network or the server is away: the like is durable, is shown, and will be sent, also after a relaunch.
  case queued
}
