/// The result of ``MomentsRepoType/updateLike(isLiked:momentID:fromUserID:)``.
public enum MomentLikeOutcome: Hashable, Sendable {
  /// The server has the like, and a timeline that contains it is stored.
  case confirmed

  /// The like is durable and visible, and will be sent, also after a relaunch.
  ///
  /// The network or the server can't be reached, the server's answer can't be used, or the server requires the user to
  /// sign in again.
  case queued
}
