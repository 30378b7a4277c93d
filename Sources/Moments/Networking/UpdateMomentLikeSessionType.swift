public import GraphQLClient

/// A session that likes and unlikes moments on the server.
public protocol UpdateMomentLikeSessionType: Sendable {
  /// Sets whether a user likes a moment.
  ///
  /// Cancelling the calling task cancels the request and throws `APISessionError.cancelled`. The server may have made
  /// the change nevertheless.
  ///
  /// - Parameters:
  ///   - isLiked: Whether the user likes the moment from now on.
  ///   - momentID: The server's identifier of the moment.
  ///   - userID: The server's identifier of the user.
  /// - Returns: The timeline of the user after the change, including likes.
  /// - Throws: An `APISessionError`.
  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails

  /// Sets whether a user likes a moment, under a key by which the server recognizes repeated attempts at the same
  /// change.
  ///
  /// To send a change again, for example because its reply was lost, the caller passes the same key. The default
  /// implementation ignores the key.
  ///
  /// - Parameters:
  ///   - isLiked: Whether the user likes the moment from now on.
  ///   - momentID: The server's identifier of the moment.
  ///   - userID: The server's identifier of the user.
  ///   - idempotencyKey: The key of the change, the same for all attempts and different from that of any other change.
  /// - Returns: The timeline of the user after the change, including likes.
  /// - Throws: An `APISessionError`.
  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails

  /// Sets whether a user likes a moment, under a key, and returns the timeline together with the errors that made it
  /// incomplete.
  ///
  /// A server that has made the change, but fails to return a nullable field such as the title of a moment, sends an
  /// error beside the timeline. The change counts nevertheless, and also if the timeline can't be read. The default
  /// implementation calls ``updateLike(_:momentID:fromUserID:idempotencyKey:)`` and returns no errors.
  ///
  /// - Parameters:
  ///   - isLiked: Whether the user likes the moment from now on.
  ///   - momentID: The server's identifier of the moment.
  ///   - userID: The server's identifier of the user.
  ///   - idempotencyKey: The key of the change, the same for all attempts and different from that of any other change.
  /// - Returns: The timeline of the user after the change, including likes, and the errors of its missing fields.
  /// - Throws: An `APISessionError`.
  func updateLikeResponse(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> GraphQLResponse<GraphQLField<MomentsDetails>>
}

extension UpdateMomentLikeSessionType {
  /// Sets whether a user likes a moment with ``updateLike(_:momentID:fromUserID:idempotencyKey:)``, and returns the
  /// timeline without errors.
  public func updateLikeResponse(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> GraphQLResponse<GraphQLField<MomentsDetails>> {
    let details = try await updateLike(
      isLiked, momentID: momentID, fromUserID: userID, idempotencyKey: idempotencyKey)
    return GraphQLResponse(data: .value(details))
  }

  /// Sets whether a user likes a moment, ignoring the key.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await updateLike(isLiked, momentID: momentID, fromUserID: userID)
  }
}
