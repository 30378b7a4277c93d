/// The result of a like, as ``MomentsRepoType/updateLike(isLiked:momentID:fromUserID:)`` returns it.
public enum MomentLikeOutcome: Hashable, Sendable {
  /// The server has it, and a timeline with it is stored.
  ///
  /// Where the server answers with success and gives no timeline that can be read, none is stored: then the like is
  /// shown until one comes, though not after a relaunch.
  case confirmed

  /// The network or the server is away, or the server wants the user to sign in again: the like is durable, is shown,
  /// and will be sent, also after a relaunch.
  case queued
}
