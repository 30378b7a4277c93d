internal import Foundation
public import GraphQLClient
public import Repository

/// The timelines of a server, and the likes it is sent, for the engine under a ``MomentsRepo``.
public struct MomentsSource: PagedSource, MutableSource {
  /// What the app changes.
  public typealias Mutation = MomentLike

  /// A user, whose timeline it is and who likes.
  public struct Key: RepositoryKey {
    /// The user.
    public let userID: String?

    /// The id of the user.
    public var storeID: String { userID ?? "" }

    /// Creates the key of a user.
    public init(storeID: String) {
      userID = storeID
    }

    init(_ userID: String) {
      self.userID = userID
    }
  }

  let getMoments: any GetMomentsByUserIDSessionType
  let updateLike: any UpdateMomentLikeSessionType
  /// The collection of the timelines in the store.
  public let name = "moments-details"

  /// Fetches the whole timeline of a user.
  public func fetch(_ key: Key) async throws(APISessionError) -> MomentsDetails {
    try await getMoments.getMoments(userID: key.storeID)
  }

  /// Fetches a page of the timeline of a user.
  public func fetch(_ key: Key, after cursor: String?, limit: Int) async throws(APISessionError) -> MomentsDetails {
    try await getMoments.getMoments(userID: key.storeID, first: limit, after: cursor)
  }

  /// Sends a like.
  ///
  /// A timeline that is fetched confirms one whose reply can't be used.
  public func send(
    _ like: MomentLike, to key: Key, id: MutationID
  ) async throws(APISessionError) -> MutationReply<MomentsDetails> {
    do throws(APISessionError) {
      return .value(
        try await updateLike.updateLike(
          like.isLiked, momentID: like.momentID, fromUserID: like.userID, idempotencyKey: id.rawValue))
    } catch {
      guard error.isUnusableSuccess, let details = await detailsThatShow(like) else { throw error }
      return .value(details)
    }
  }

  /// Fetches the timeline after a success whose reply can't be used, because something else than the server may have
  /// answered.
  ///
  /// - Returns: The timeline if it has the like.
  private func detailsThatShow(_ like: MomentLike) async -> MomentsDetails? {
    do throws(APISessionError) {
      let details = try await getMoments.getMoments(userID: like.userID)
      var liked = details
      like.apply(to: &liked)
      return liked == details ? details : nil
    } catch {
      // Then nothing is known, and the like is sent again.
      return nil
    }
  }

  /// Returns what a failed request means.
  public func disposition(of failure: APISessionError) -> FailureDisposition {
    switch failure {
    case .emptyReply, .replyTooLarge, .undecodable, .notAnAPIResponse, .timedOut, .cancelled: .unknownOutcome
    case .transport(let error): error.code == .cannotConnectToHost ? .retryLater() : .unknownOutcome
    case _ where [401, 407].contains(failure.status): .needsSignIn
    case _ where failure.isFinal: .refused
    case _ where failure.retryAfter != nil: .retryLater(after: failure.retryAfter)
    default: .unknownOutcome
    }
  }

}

extension MomentsSource: CompletingSource {
  /// Keeps the addresses of links, which a server without pages doesn't send, and the end of the stored pages if they end
  /// the timeline still.
  package func complete(_ fetched: MomentsDetails, with stored: MomentsDetails) -> MomentsDetails {
    var details = fetched.withAddresses(from: stored)
    let endsAlike = details.moments.last?.id == stored.moments.last?.id && details.nextCursor == stored.nextCursor
    if details.pageInfo != nil, endsAlike { details.pageInfo = stored.pageInfo }
    return details
  }
}

extension MomentsDetails: PagedValue {
  /// Where the next page begins; `nil` if there is no next page, or if the server doesn't page.
  public var nextCursor: String? {
    get { pageInfo.flatMap { $0.hasNextPage ? $0.endCursor : nil } }
    set {
      guard newValue != nextCursor else { return }
      pageInfo = PageInfo(endCursor: newValue ?? pageInfo?.endCursor, hasNextPage: newValue != nil)
    }
  }

  /// Whether there are links whose address was not asked for.
  private var lacksAddresses: Bool { moments.contains { $0.type == .url && $0.url == nil } }

  /// The timeline with the addresses of links that an earlier reply brought and this one doesn't have.
  ///
  /// - Complexity: O(*n*), where *n* is the number of moments; O(1) extra where no address is missing.
  fileprivate func withAddresses(from stored: MomentsDetails) -> MomentsDetails {
    guard lacksAddresses else { return self }
    let known = stored.moments.compactMap { moment in moment.url.map { (moment.id, $0) } }
    let addresses = Dictionary(known, uniquingKeysWith: { first, _ in first })
    var details = self
    for index in details.moments.indices where details.moments[index].url == nil {
      details.moments[index].url = addresses[details.moments[index].id]
    }
    return details
  }
}

extension APISessionError {
  /// Whether the server, or something that took its place, answered with success, and what it said can't be used.
  fileprivate var isUnusableSuccess: Bool {
    switch self {
    case .emptyReply, .replyTooLarge, .undecodable: true
    default: false
    }
  }
}
