/// The result of ``MomentsRepoType/updateLike(isLiked:momentID:fromUserID:)``.
public enum MomentLikeOutcome: Hashable, Sendable {
  /// The server has the like, and a timeline that contains it is stored.
  case confirmed

  /// The like is durable and visible, but not confirmed yet.
  ///
  /// The server can't be reached, asked for a later attempt, or requires the user to sign in again. The like is then
  /// sent later, after a relaunch if necessary. Or the server has the like, but its answer can't be used or stored yet.
  ///
  /// Also returned if another repository on the store sends the like and doesn't report a result within ten seconds, or
  /// if the like is refused and this repository doesn't have the server's error. A refused like is an exception: it is
  /// rolled back, so it isn't visible and isn't sent again, and ``MomentsRepo/mutations`` lists it.
  case queued
}
