public import GraphQLClient

/// A session that fetches timelines from a GraphQL server.
///
/// ## Servers without pages
///
/// A server with the schema of the RxSwift app that this feature replaces supports neither pages nor the URLs of links.
/// Such a server refuses a document that requests either, without executing any of it. If the server refuses a request
/// for a page in this way, and has never returned a page, the session fetches the complete timeline instead. Once that
/// timeline has arrived, the session requests no more pages, so such a server usually costs one additional request.
public struct GetMomentsByUserIDSession: GetMomentsByUserIDSessionType {
  private let apiSession: APISession
  private let requestsLikes: @Sendable () async -> Bool
  private let pagingSupport = PagingSupport()

  /// Creates a session.
  ///
  /// - Parameters:
  ///   - apiSession: The client of the server.
  ///   - withLikes: A closure that returns whether to request likes; called for each request.
  public init(apiSession: APISession, withLikes: @escaping @Sendable () async -> Bool = { true }) {
    self.apiSession = apiSession
    requestsLikes = withLikes
  }

  /// Creates a session that requests likes while ``InternalToggle/isLikeButtonForMomentEnabled`` is on.
  ///
  /// A toggle that can't be read counts as off: the timeline is fetched without likes.
  ///
  /// - Parameters:
  ///   - apiSession: The client of the server.
  ///   - togglesDataStore: The store of the toggle. The toggle is read for each request, so a change affects the next
  ///     request.
  ///   - onUnreadableToggle: A closure that is called with the error each time the toggle can't be read.
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

  /// Fetches the timeline of a user with one request.
  ///
  /// - Parameter userID: The server's identifier of the user.
  /// - Returns: The timeline, without ``MomentsDetails/pageInfo``. Its moments have no `url`. They have `isLiked` and
  ///   `likes` only if likes were requested.
  /// - Throws: An `APISessionError`; `APISessionError.graphQL` for an unknown user.
  public func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    try await getMomentsResponse(userID: userID).data
  }

  /// Fetches the timeline of a user with one request, and returns it together with the errors of its missing fields.
  ///
  /// - Parameter userID: The server's identifier of the user.
  /// - Returns: The timeline that ``getMoments(userID:)`` returns, and the errors beside it.
  /// - Throws: An `APISessionError`; `APISessionError.graphQL` for an unknown user, and if a field is missing without
  ///   which there is no timeline.
  public func getMomentsResponse(userID: String) async throws(APISessionError) -> GraphQLResponse<MomentsDetails> {
    typealias Document = MomentsDocument.GetMomentsDetailsByUserID
    let response = try await apiSession.response(
      to: Document.text,
      operationName: Document.operationName,
      variables: Document.Variables(userID: userID, withLikes: await requestsLikes()),
      as: Document.Reply.self)
    return response.map(\.getMomentsDetailsByUserID)
  }

  /// Fetches a page of a user's timeline, or the complete timeline if the server doesn't support pages.
  ///
  /// - Parameters:
  ///   - userID: The server's identifier of the user.
  ///   - first: The maximum number of moments.
  ///   - after: The cursor after which the page begins; `nil` for the newest page.
  /// - Returns: The page, with its ``MomentsDetails/pageInfo``, or the complete timeline without one. The moments have
  ///   `isLiked` and `likes` only if likes were requested.
  /// - Throws: An `APISessionError`; `APISessionError.graphQL` for an unknown user or cursor.
  public func getMoments(
    userID: String, first: Int, after: String?
  ) async throws(APISessionError) -> MomentsDetails {
    try await getMomentsResponse(userID: userID, first: first, after: after).data
  }

  /// Fetches a page of a user's timeline, or the complete timeline if the server doesn't support pages, and returns it
  /// together with the errors of its missing fields.
  ///
  /// - Parameters:
  ///   - userID: The server's identifier of the user.
  ///   - first: The maximum number of moments.
  ///   - after: The cursor after which the page begins; `nil` for the newest page.
  /// - Returns: The page that ``getMoments(userID:first:after:)`` returns, and the errors beside it.
  /// - Throws: An `APISessionError`; `APISessionError.graphQL` for an unknown user or cursor, and if a field is missing
  ///   without which there is no page.
  public func getMomentsResponse(
    userID: String, first: Int, after: String?
  ) async throws(APISessionError) -> GraphQLResponse<MomentsDetails> {
    guard pagingSupport.isPossible else { return try await getMomentsResponse(userID: userID) }
    do throws(APISessionError) {
      let page = try await fetchPage(userID: userID, first: first, after: after)
      pagingSupport.confirm()
      return page
    } catch {
      guard pagingSupport.isUnknown, error.isRefusalOfDocument else { throw error }
      let timeline = try await getMomentsResponse(userID: userID)
      pagingSupport.ruleOut()
      return timeline
    }
  }

  private func fetchPage(
    userID: String, first: Int, after: String?
  ) async throws(APISessionError) -> GraphQLResponse<MomentsDetails> {
    typealias Document = MomentsDocument.Page
    let response = try await apiSession.response(
      to: Document.text,
      operationName: Document.operationName,
      variables: Document.Variables(userID: userID, withLikes: await requestsLikes(), first: first, after: after),
      as: Document.Reply.self)
    return response.map(\.getMomentsDetailsByUserID)
  }
}

extension APISessionError {
  /// Whether the server may have refused the document before executing any of it.
  ///
  /// Errors in the execution of a field have a path, and errors in the document don't. A server whose replies have the
  /// type `application/json` may refuse a document with the status 400 or 422.
  fileprivate var isRefusalOfDocument: Bool {
    switch self {
    case _ where isTransient: false
    case .graphQL(let errors, _, _): meaning(by: .standard) == .refused && errors.allSatisfy { $0.path == nil }
    case .statusCode(400, _, _), .statusCode(422, _, _): true
    default: false
    }
  }
}
