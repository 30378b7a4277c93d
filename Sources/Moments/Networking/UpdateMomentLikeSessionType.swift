public import GraphQLClient

/// Likes and unlikes moments on the server.
public protocol UpdateMomentLikeSessionType: Sendable {
  /// Sets whether a user likes a moment.
  ///
  /// Cancelling the calling task cancels the request and throws `APISessionError.cancelled`; the server may have
  /// made the change all the same.
  ///
  /// - Parameters:
  ///   - isLiked: Whether the user likes the moment from now on.
  ///   - momentID: The server's identifier of the moment.
  ///   - userID: The server's identifier of the user.
  /// - Returns: The timeline after the change, with likes.
  /// - Throws: `APISessionError`.
  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails

  /// Sets whether a user likes a moment, under a key by which the server knows a repetition of the same change.
  ///
  /// A change that is sent again, because its reply was lost, carries the key it had the first time. A session that
  /// has no use for keys need not implement this: by default it does the same as the other requirement.
  ///
  /// - Parameters:
  ///   - isLiked: Whether the user likes the moment from now on.
  ///   - momentID: The server's identifier of the moment.
  ///   - userID: The server's identifier of the user.
  ///   - idempotencyKey: The same for each attempt at one change, and for no other change.
  /// - Returns: The timeline after the change, with likes.
  /// - Throws: `APISessionError`.
  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails
}

extension UpdateMomentLikeSessionType {
  /// Sets whether a user likes a moment, without use of the key.
  ///
  /// - Parameters:
  ///   - isLiked: Whether the user likes the moment from now on.
  ///   - momentID: The server's identifier of the moment.
  ///   - userID: The server's identifier of the user.
  ///   - idempotencyKey: Not used.
  /// - Returns: The timeline after the change, with likes.
  /// - Throws: `APISessionError`.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await updateLike(isLiked, momentID: momentID, fromUserID: userID)
  }
}
