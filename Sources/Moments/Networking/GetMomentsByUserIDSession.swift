/// Fetches timelines from a GraphQL server.
public struct GetMomentsByUserIDSession: GetMomentsByUserIDSessionType {
  private let apiSession: APISession
  private let withLikes: @Sendable () async -> Bool

  /// Creates a session.
  ///
  /// - Parameters:
  ///   - apiSession: The client of the server.
  ///   - withLikes: Whether to ask for likes; asked anew at each request, so that a toggle acts on the next one.
  public init(apiSession: APISession, withLikes: @escaping @Sendable () async -> Bool = { true }) {
    self.apiSession = apiSession
    self.withLikes = withLikes
  }

  /// Creates a session that asks for likes while ``InternalToggle/isLikeButtonForMomentEnabled`` is on.
  ///
  /// A toggle that cannot be read counts as off: it never costs the reader the timeline.
  ///
  /// - Parameters:
  ///   - apiSession: The client of the server.
  ///   - togglesDataStore: Where the toggle is kept; asked anew at each request, so that a change acts on the next one.
  ///   - onUnreadableToggle: Told why the toggle could not be read, at each request for which that is so.
  public init(
    apiSession: APISession, togglesDataStore: any TogglesDataStoreType,
    onUnreadableToggle: @escaping @Sendable (TogglesDataStoreError) -> Void
  ) {
    self.init(apiSession: apiSession) {
      do throws(TogglesDataStoreError) {
        return try await togglesDataStore.isToggleOn(InternalToggle.isLikeButtonForMomentEnabled)
      } catch {
        onUnreadableToggle(error)
        return false
      }
    }
  }

  /// Fetches the timeline of the user with this id, with one request.
  ///
  /// - Parameter userID: The server's identifier of the user.
  /// - Returns: The timeline; its moments have `isLiked` and `likes` only if likes were asked for.
  /// - Throws: ``APISessionError``; an unknown user is ``APISessionError/graphQL(_:)``.
  public func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    try await post(userID: userID)
  }

  /// Fetches a page of the timeline of the user with this id, with one request.
  ///
  /// - Parameters:
  ///   - userID: The server's identifier of the user.
  ///   - first: How many moments at most.
  ///   - after: The cursor of the moment behind which they begin; nil for the newest.
  /// - Returns: The page; its moments have `isLiked` and `likes` only if likes were asked for.
  /// - Throws: ``APISessionError``; an unknown user or cursor is ``APISessionError/graphQL(_:)``.
  public func getMoments(
    userID: String, first: Int, after: String?
  ) async throws(APISessionError) -> MomentsDetails {
    try await post(userID: userID, first: first, after: after)
  }

  private func post(
    userID: String, first: Int? = nil, after: String? = nil
  ) async throws(APISessionError) -> MomentsDetails {
    typealias Document = MomentsDocument.GetMomentsDetailsByUserID
    return try await apiSession.post(
      document: Document.text,
      operationName: Document.operationName,
      variables: Document.Variables(userID: userID, withLikes: await withLikes(), first: first, after: after),
      as: Document.Reply.self
    ).getMomentsDetailsByUserID
  }
}
