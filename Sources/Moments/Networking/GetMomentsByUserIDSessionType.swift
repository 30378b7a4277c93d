public import GraphQLClient

/// A session that fetches timelines from the server.
public protocol GetMomentsByUserIDSessionType: Sendable {
  /// Fetches the timeline of a user.
  ///
  /// Sends one request. Cancelling the calling task cancels the request and throws `APISessionError.cancelled`.
  ///
  /// - Parameter userID: The server's identifier of the user.
  /// - Returns: The server's current timeline.
  /// - Throws: An `APISessionError`.
  func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails

  /// Fetches a page of a user's timeline.
  ///
  /// The default implementation is for servers without pages. It fetches the complete timeline for any page, and sets
  /// its ``MomentsDetails/pageInfo`` to `nil`.
  ///
  /// - Parameters:
  ///   - userID: The server's identifier of the user.
  ///   - first: The maximum number of moments.
  ///   - after: The cursor after which the page begins; `nil` for the newest page.
  /// - Returns: The server's current page, with its ``MomentsDetails/pageInfo``, or the complete timeline without one.
  /// - Throws: An `APISessionError`.
  func getMoments(userID: String, first: Int, after: String?) async throws(APISessionError) -> MomentsDetails

  /// Fetches the timeline of a user, and returns it together with the errors that made it incomplete.
  ///
  /// A server that fails to return a nullable field, such as the title of a moment, sends an error beside the timeline.
  /// The timeline counts nevertheless. The default implementation calls ``getMoments(userID:)`` and returns no errors.
  ///
  /// - Parameter userID: The server's identifier of the user.
  /// - Returns: The server's current timeline, and the errors of its missing fields.
  /// - Throws: An `APISessionError`.
  func getMomentsResponse(userID: String) async throws(APISessionError) -> GraphQLResponse<MomentsDetails>

  /// Fetches a page of a user's timeline, and returns it together with the errors that made it incomplete.
  ///
  /// The default implementation calls ``getMoments(userID:first:after:)`` and returns no errors.
  ///
  /// - Parameters:
  ///   - userID: The server's identifier of the user.
  ///   - first: The maximum number of moments.
  ///   - after: The cursor after which the page begins; `nil` for the newest page.
  /// - Returns: The server's current page, and the errors of its missing fields.
  /// - Throws: An `APISessionError`.
  func getMomentsResponse(
    userID: String, first: Int, after: String?
  ) async throws(APISessionError) -> GraphQLResponse<MomentsDetails>
}

extension GetMomentsByUserIDSessionType {
  /// Fetches the timeline of a user with ``getMoments(userID:)``, and returns it without errors.
  public func getMomentsResponse(userID: String) async throws(APISessionError) -> GraphQLResponse<MomentsDetails> {
    GraphQLResponse(data: try await getMoments(userID: userID))
  }

  /// Fetches a page with ``getMoments(userID:first:after:)``, and returns it without errors.
  public func getMomentsResponse(
    userID: String, first: Int, after: String?
  ) async throws(APISessionError) -> GraphQLResponse<MomentsDetails> {
    GraphQLResponse(data: try await getMoments(userID: userID, first: first, after: after))
  }

  /// Fetches the complete timeline for any page.
  ///
  /// - Parameters:
  ///   - userID: The server's identifier of the user.
  ///   - first: Ignored.
  ///   - after: Ignored.
  /// - Returns: The timeline, without ``MomentsDetails/pageInfo``.
  /// - Throws: An `APISessionError`.
  public func getMoments(
    userID: String, first: Int, after: String?
  ) async throws(APISessionError) -> MomentsDetails {
    var details = try await getMoments(userID: userID)
    details.pageInfo = nil
    return details
  }
}
