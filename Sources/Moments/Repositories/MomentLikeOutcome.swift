/// The result of ``MomentsRepoType/updateLike(isLiked:momentID:fromUserID:)``.
public enum MomentLikeOutcome: Hashable, Sendable {
  /// The server has the like, and a timeline that contains it is stored.
  case confirmed

  /// The like is durable and visible, but not confirmed yet.
  ///
  /// Usually it has to wait, for example because the server can't be reached, asked for a later attempt, gave no usable
  /// answer, or requires the user to sign in again. It is then sent later, after a relaunch if necessary. Or the server
  /// has the like, but a timeline that contains it can't be fetched or stored yet.
  ///
  /// Also returned if another repository on the store sends the like and doesn't report a result within ten seconds.
  ///
  /// There is one exception: a refused like is also reported as queued if this repository has no server error to throw,
  /// because another repository sent the like, or because too many attempts were interrupted, usually by the end of a
  /// process. The like is then rolled back, and ``MomentsRepo/mutations`` lists it.
  case queued
}
