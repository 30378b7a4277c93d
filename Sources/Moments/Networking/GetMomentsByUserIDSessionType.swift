/// Fetches the timeline of a user.
public protocol GetMomentsByUserIDSessionType: Sendable {
  /// Fetches the timeline of the user with this id, once.
  ///
  /// Cancelling the calling task cancels the request and throws ``APISessionError/cancelled``.
  ///
  /// - Parameter userID: The server's identifier of the user.
  /// - Returns: The timeline as the server has it now.
  /// - Throws: ``APISessionError``.
  func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails
}
