/// The result of ``MomentsRepoType/updateLike(isLiked:momentID:fromUserID:)``.
public enum MomentLikeOutcome: Hashable, Sendable {
  /// The server has the like, and a timeline that contains it is stored.
  case confirmed

  /// The like is durable and visible, and will be sent, also after a relaunch.
  ///
  /// The network or the server can't be reached, the server's answer can't be used, or the server requires the user to
  /// sign in again.
  ///
  /// Also returned if another repository on the store sends the like, and either doesn't report a result within ten
  /// seconds or reports that the server refused the like. ``MomentsRepo/mutations`` lists a refused like.
  case queued
}
