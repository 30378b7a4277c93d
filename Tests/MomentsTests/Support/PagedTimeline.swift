import GraphQLClient
import Moments
import MomentsTesting
import Multicast

/// A stub of a server that serves one timeline in pages.
///
/// A test can insert moments at the head, and remove moments. The cursor of a moment is its id. The server refuses any
/// other cursor.
final class PagedTimeline: GetMomentsByUserIDSessionType, UpdateMomentLikeSessionType {
  /// The arguments of a fetch; `first` is `nil` for the complete timeline.
  struct Request: Hashable, Sendable {
    var first: Int?
    var after: String?
  }

  private struct State {
    var momentIDs: [String]
    var requests: [Request] = []
  }

  private let state: Lock<State>
  private let onRequest: @Sendable (Request) async throws(APISessionError) -> Void

  /// Creates a server whose timeline has the given moments.
  ///
  /// - Parameter onRequest: A closure that runs for each fetch, after the timeline was read and before the reply is
  ///   returned.
  init(
    _ momentIDs: [String], onRequest: @escaping @Sendable (Request) async throws(APISessionError) -> Void = { _ in }
  ) {
    state = Lock(State(momentIDs: momentIDs))
    self.onRequest = onRequest
  }

  /// All fetches, in order.
  var requests: [Request] { state.withLock { $0.requests } }

  /// Inserts a moment at the head.
  func insert(_ momentID: String) {
    state.withLock { $0.momentIDs.insert(momentID, at: 0) }
  }

  /// Removes a moment.
  func remove(_ momentID: String) {
    state.withLock { $0.momentIDs.removeAll { $0 == momentID } }
  }

  /// The error for a page after a moment that doesn't exist.
  static func refusal(of cursor: String) -> APISessionError {
    .graphQL([GraphQLError(message: "The timeline has no cursor “\(cursor)”.")])
  }

  func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    try await reply(to: Request())
  }

  func getMoments(userID: String, first: Int, after: String?) async throws(APISessionError) -> MomentsDetails {
    try await reply(to: Request(first: first, after: after))
  }

  /// Returns the complete timeline with only the like of this call, because the server doesn't keep likes.
  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    Self.page(
      MomentsDetails.fixture(momentIDs: state.withLock { $0.momentIDs }, likedMomentIDs: isLiked ? [momentID] : []),
      Request())
  }

  private func reply(to request: Request) async throws(APISessionError) -> MomentsDetails {
    let details = state.withLock { state in
      state.requests.append(request)
      return MomentsDetails.fixture(momentIDs: state.momentIDs)
    }
    try await onRequest(request)
    if let after = request.after, !details.moments.contains(where: { $0.id == after }) {
      throw Self.refusal(of: after)
    }
    return Self.page(details, request)
  }

  /// Returns the requested page of a timeline.
  static func page(_ details: MomentsDetails, _ request: Request) -> MomentsDetails {
    let start = request.after.map { after in details.moments.firstIndex { $0.id == after }! + 1 } ?? 0
    let rest = details.moments[start...]
    let moments = Array(rest.prefix(request.first ?? rest.count))
    var page = details
    page.moments = moments
    page.pageInfo = .init(endCursor: moments.last?.id, hasNextPage: moments.count < rest.count)
    return page
  }
}
