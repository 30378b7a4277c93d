internal import Foundation
public import GraphQLClient
internal import Multicast
public import Repository

/// Fetches timelines and sends likes for a ``MomentsRepo``.
public struct MomentsSource: PagedSource, MutableSource {
  /// The mutations of a timeline.
  public typealias Mutation = MomentLike

  /// The key of a timeline: the id of its user.
  public struct Key: RepositoryKey {
    /// The id of the user the timeline belongs to, and whose likes are sent; never `nil`.
    public let userID: String?

    /// The id of the user, as the id of the timeline in the store.
    public var storeID: String { userID ?? "" }

    /// Creates the key of a user's timeline.
    public init(storeID: String) {
      userID = storeID
    }

    init(_ userID: String) {
      self.userID = userID
    }
  }

  let getMomentsSession: any GetMomentsByUserIDSessionType
  let updateLikeSession: any UpdateMomentLikeSessionType
  /// The meanings of the server's error codes.
  var errorCodes = GraphQLErrorCodes.standard
  /// Receives the replies that count although a part of them is missing.
  ///
  /// Nothing is replayed, because the reports name a user, who may have signed out.
  let incompleteReplies = MulticastRelay<IncompleteReply>(buffering: .dropOldest(1024))
  /// The name of the store collection that contains the timelines.
  public let name = "moments-details"
  /// `true`, because the server returns the complete timeline to a request without a page.
  public let fetchesCompleteLists = true

  /// Fetches the complete timeline of a user.
  public func fetch(_ key: Key) async throws(APISessionError) -> MomentsDetails {
    report(try await getMomentsSession.getMomentsResponse(userID: key.storeID), to: .fetch(userID: key.storeID))
  }

  /// Fetches a page of the timeline of a user.
  ///
  /// - Throws: An `APISessionError`, also if an error of the server concerns the page info: without that, the timeline
  ///   would seem to end with the page.
  public func fetch(_ key: Key, after cursor: String?, limit: Int) async throws(APISessionError) -> MomentsDetails {
    let response = try await getMomentsSession.getMomentsResponse(userID: key.storeID, first: limit, after: cursor)
    if response.data.pageInfo == nil, response.errors.contains(where: { $0.concerns("pageInfo") }) {
      throw .graphQL(response.errors)
    }
    return report(response, to: .fetch(userID: key.storeID))
  }

  /// Sends a like.
  ///
  /// If the server has made the change, but the timeline in its reply can't be read, or lacks likes or moments because of
  /// an error, the reply counts without a value. So does a reply without a timeline that has an error below the field of
  /// the like; see `APISessionError.hasError(below:)`.
  public func send(
    _ like: MomentLike, to key: Key, id: MutationID
  ) async throws(APISessionError) -> MutationReply<MomentsDetails> {
    let response: GraphQLResponse<GraphQLField<MomentsDetails>>
    do throws(APISessionError) {
      response = try await updateLikeSession.updateLikeResponse(
        like.isLiked, momentID: like.momentID, fromUserID: like.userID, idempotencyKey: id.rawValue)
    } catch {
      guard case .graphQL(let errors, _, _) = error, error.hasError(below: MomentsDocument.UpdateMomentLike.field)
      else { throw error }
      response = GraphQLResponse(data: .unreadable(reason: "The server sent none"), errors: errors)
    }
    switch response.data {
    case .value(let details):
      let details = report(response.map { _ in details }, to: .like(like))
      return response.errors.contains { $0.concerns("isLiked") || $0.concernsMoment } ? .withoutValue : .value(details)
    case .unreadable(let reason):
      incompleteReplies.send(
        IncompleteReply(request: .like(like), errors: response.errors, unreadableReason: reason))
      return .withoutValue
    }
  }

  /// Returns the timeline of a response, and reports the errors beside it.
  private func report(
    _ response: GraphQLResponse<MomentsDetails>, to request: IncompleteReply.Request
  ) -> MomentsDetails {
    if !response.errors.isEmpty { incompleteReplies.send(IncompleteReply(request: request, errors: response.errors)) }
    return response.data
  }

  /// Returns how to proceed after a failed request.
  ///
  /// The codes of reported errors take precedence over the HTTP status; see `APISessionError.meaning(by:)`.
  public func disposition(of failure: APISessionError) -> FailureDisposition {
    switch failure {
    case .emptyReply, .replyTooLarge, .undecodable, .notAnAPIResponse, .timedOut, .cancelled: .unknownOutcome
    case .transport(let error): error.impliesUnsentRequest ? .retryLater() : .unknownOutcome
    case .graphQL:
      switch failure.meaning(by: errorCodes) {
      case .unknownOutcome: .unknownOutcome(after: failure.retryAfter)
      case .needsSignIn: .needsSignIn
      case .retryLater: .retryLater(after: failure.retryAfter)
      case .refused, nil: .refused
      }
    case _ where [401, 407].contains(failure.status): .needsSignIn
    case _ where failure.isFinal: .refused
    case _ where failure.retryAfter != nil: .retryLater(after: failure.retryAfter)
    default: .unknownOutcome
    }
  }
}

extension GraphQLError {
  /// Whether the error is that of a field with the given name.
  fileprivate func concerns(_ field: String) -> Bool { path?.last == .field(field) }

  /// Whether the error is that of a whole moment.
  fileprivate var concernsMoment: Bool {
    guard let path, case .index? = path.last else { return false }
    return path.dropLast().last == .field("moments")
  }
}

extension MomentsSource: CompletingSource {
  /// Adds the stored information that a fetched timeline lacks.
  ///
  /// Keeps the URLs of links, because complete timelines, including replies to likes, lack them; see `MomentsDocument`.
  /// If the fetched timeline has a page info, the stored one is kept if both timelines end with the same moment and
  /// have the same ``MomentsDetails/nextCursor``. The two page infos may still differ: after the newest page was joined
  /// to stored moments that have no next page, the end cursor of `fetched` is that of the newest page, not of the last
  /// moment.
  public func complete(_ fetched: MomentsDetails, with stored: MomentsDetails) -> MomentsDetails {
    var details = fetched.withURLs(from: stored)
    let hasSameEnd = details.moments.last?.id == stored.moments.last?.id && details.nextCursor == stored.nextCursor
    if details.pageInfo != nil, hasSameEnd { details.pageInfo = stored.pageInfo }
    return details
  }
}

extension MomentsDetails: PagedValue {
  /// The cursor of the next page; `nil` if there is no next page.
  public var nextCursor: String? {
    get { pageInfo.flatMap { $0.hasNextPage ? $0.endCursor : nil } }
    set {
      guard newValue != nextCursor else { return }
      pageInfo = PageInfo(endCursor: newValue ?? pageInfo?.endCursor, hasNextPage: newValue != nil)
    }
  }

  /// Returns the timeline with missing URLs taken from a stored timeline.
  ///
  /// - Complexity: O(*n*), where *n* is the number of moments of both timelines. If the stored timeline has no URLs, no
  ///   additional memory is needed.
  fileprivate func withURLs(from stored: MomentsDetails) -> MomentsDetails {
    let idsAndURLs = stored.moments.compactMap { moment in moment.url.map { (moment.id, $0) } }
    if idsAndURLs.isEmpty { return self }
    let urlsByID = Dictionary(idsAndURLs, uniquingKeysWith: { first, _ in first })
    var details = self
    for index in details.moments.indices where details.moments[index].url == nil {
      details.moments[index].url = urlsByID[details.moments[index].id]
    }
    return details
  }
}
