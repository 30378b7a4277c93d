/// The result of ``MomentsRepoType/updateLike(isLiked:momentID:fromUserID:)``.
public enum MomentLikeOutcome: Hashable, Sendable {
  /// The server has the like, and a timeline that contains it is stored.
  case confirmed

  /// The like is durable and visible, and will be sent, after a relaunch if necessary.
  ///
  /// Returned if the server can't be reached, asks for a later attempt, or requires the user to sign in again, or if
  /// its answer can't be used, or can't be stored yet.
  ///
  /// Also returned if another repository on the store sends the like, and either doesn't report a result within ten
  /// seconds or reports that the like was refused. A refused like isn't visible and isn't sent again: it is rolled
  /// back, and ``MomentsRepo/mutations`` lists it.
  case queued
}
