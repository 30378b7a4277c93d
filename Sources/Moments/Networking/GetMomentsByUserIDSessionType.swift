public import GraphQLClient

/// Fetches the timeline of a user.
public protocol GetMomentsByUserIDSessionType: Sendable {
  /// Fetches the timeline of the user with this id, once.
  ///
  /// Cancelling the calling task cancels the request and throws `APISessionError.cancelled`.
  ///
  /// - Parameter userID: The server's identifier of the user.
  /// - Returns: The timeline as the server has it now.
  /// - Throws: `APISessionError`.
  func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails

  /// Fetches a page of the timeline of the user with this id, once.
  ///
  /// A session of a server that does not page need not implement this: by default it fetches the whole timeline, whose
  /// ``MomentsDetails/pageInfo`` is nil, and which is an answer to any page.
  ///
  /// - Parameters:
  ///   - userID: The server's identifier of the user.
  ///   - first: How many moments at most.
  ///   - after: The cursor of the moment behind which they begin; nil for the newest.
  /// - Returns: The page as the server has it now, with its ``MomentsDetails/pageInfo``.
  /// - Throws: `APISessionError`.
  func getMoments(userID: String, first: Int, after: String?) async throws(APISessionError) -> MomentsDetails
}

extension GetMomentsByUserIDSessionType {
  /// Fetches the whole timeline, whichever page is asked for.
  ///
  /// - Parameters:
  ///   - userID: The server's identifier of the user.
  ///   - first: Not used.
  ///   - after: Not used.
  /// - Returns: The timeline, without ``MomentsDetails/pageInfo``.
  /// - Throws: `APISessionError`.
  public func getMoments(
    userID: String, first: Int, after: String?
  ) async throws(APISessionError) -> MomentsDetails {
    var details = try await getMoments(userID: userID)
    details.pageInfo = nil
    return details
  }
}
