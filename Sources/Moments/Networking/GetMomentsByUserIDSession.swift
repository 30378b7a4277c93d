public import GraphQLClient

/// Fetches timelines from a GraphQL server.
///
/// ## Servers that do not page
///
/// A server with the lecture's schema knows neither pages nor the addresses of links, and refuses a document that asks
/// for them before it executes anything. When the first page that is asked for is refused like that, the session asks
/// for the whole timeline instead, and does so from then on. So such a server costs one request more, once.
public struct GetMomentsByUserIDSession: GetMomentsByUserIDSessionType {
  private let apiSession: APISession
  private let withLikes: @Sendable () async -> Bool
  private let paging = PagingSupport()

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
  ///   - onUnreadableToggle: Called with the reason at each request for which the toggle could not be read.
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
  /// - Returns: The timeline; its moments have `isLiked` and `likes` only if likes were asked for, and no `url`.
  /// - Throws: `APISessionError`; an unknown user is `APISessionError.graphQL`.
  public func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    typealias Document = MomentsDocument.GetMomentsDetailsByUserID
    return try await apiSession.post(
      document: Document.text,
      operationName: Document.operationName,
      variables: Document.Variables(userID: userID, withLikes: await withLikes()),
      as: Document.Reply.self
    ).getMomentsDetailsByUserID
  }

  /// Fetches a page of the timeline of the user with this id, or the whole timeline where the server does not page.
  ///
  /// - Parameters:
  ///   - userID: The server's identifier of the user.
  ///   - first: How many moments at most.
  ///   - after: The cursor of the moment behind which they begin; nil for the newest.
  /// - Returns: The page; its moments have `isLiked` and `likes` only if likes were asked for. Without
  ///   ``MomentsDetails/pageInfo`` it is the whole timeline.
  /// - Throws: `APISessionError`; an unknown user or cursor is `APISessionError.graphQL`.
  public func getMoments(
    userID: String, first: Int, after: String?
  ) async throws(APISessionError) -> MomentsDetails {
    guard paging.isPossible else { return try await getMoments(userID: userID) }
    do throws(APISessionError) {
      let page = try await page(userID: userID, first: first, after: after)
      paging.confirm()
      return page
    } catch {
      guard paging.isInDoubt, error.isRefusalOfDocument else { throw error }
      let whole = try await getMoments(userID: userID)
      paging.ruleOut()
      return whole
    }
  }

  private func page(userID: String, first: Int, after: String?) async throws(APISessionError) -> MomentsDetails {
    typealias Document = MomentsDocument.Page
    return try await apiSession.post(
      document: Document.text,
      operationName: Document.operationName,
      variables: Document.Variables(userID: userID, withLikes: await withLikes(), first: first, after: after),
      as: Document.Reply.self
    ).getMomentsDetailsByUserID
  }
}

extension APISessionError {
  /// Whether the server may have refused the document itself, before it executed anything.
  ///
  /// Errors of fields have a path; those of a document have none.
  fileprivate var isRefusalOfDocument: Bool {
    switch self {
    case _ where isTransient: false
    case .graphQL(let errors, _, _): errors.allSatisfy { $0.path == nil }
    case .statusCode(400, _, _), .statusCode(422, _, _): true
    default: false
    }
  }
}
