/// Fetches timelines from a GraphQL server.
public struct GetMomentsByUserIDSession: GetMomentsByUserIDSessionType {
  private let apiSession: APISession
  private let withLikes: @Sendable () -> Bool

  /// Creates a session.
  ///
  /// - Parameters:
  ///   - apiSession: The client of the server.
  ///   - withLikes: Whether to ask for likes; asked anew at each request, so that a toggle acts on the next one.
  public init(apiSession: APISession, withLikes: @escaping @Sendable () -> Bool = { true }) {
    self.apiSession = apiSession
    self.withLikes = withLikes
  }

  /// Fetches the timeline of the user with this id, with one request.
  ///
  /// - Parameter userID: The server's identifier of the user.
  /// - Returns: The timeline; its moments have `isLiked` and `likes` only if likes were asked for.
  /// - Throws: ``APISessionError``; an unknown user is ``APISessionError/graphQL(_:)``.
  public func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    typealias Document = MomentsDocument.GetMomentsDetailsByUserID
    return try await apiSession.post(
      document: Document.text,
      operationName: Document.operationName,
      variables: Document.Variables(userID: userID, withLikes: withLikes()),
      as: Document.Reply.self
    ).getMomentsDetailsByUserID
  }
}
