public import GraphQLClient
public import Moments
internal import Multicast

/// A session that answers with what a test gives it, and remembers what it was asked.
public final class GetMomentsByUserIDSessionStub: GetMomentsByUserIDSessionType {
  private let requests = Lock<[String]>([])
  private let reply: @Sendable (String) async throws(APISessionError) -> MomentsDetails

  /// The user ids that were asked for, in order.
  public var requestedUserIDs: [String] { requests.withLock { $0 } }

  /// Creates a session that answers with what `reply` makes of the user id.
  public init(reply: @escaping @Sendable (String) async throws(APISessionError) -> MomentsDetails) {
    self.reply = reply
  }

  /// Records the request and answers with the test's reply.
  public func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    requests.withLock { $0.append(userID) }
    return try await reply(userID)
  }
}

/// A session that answers with what a test gives it, and remembers what it was asked.
public final class UpdateMomentLikeSessionStub: UpdateMomentLikeSessionType {
  /// What one call asked for.
  public struct Request: Sendable, Hashable {
    /// Whether the user likes the moment from now on.
    public let isLiked: Bool
    /// Which moment.
    public let momentID: String
    /// Who likes it.
    public let userID: String

    /// Creates a request to compare with.
    public init(isLiked: Bool, momentID: String, userID: String) {
      self.isLiked = isLiked
      self.momentID = momentID
      self.userID = userID
    }
  }

  private let recorded = Lock<[Request]>([])
  private let reply: @Sendable (Request) async throws(APISessionError) -> MomentsDetails

  /// What was asked for, in order.
  public var requests: [Request] { recorded.withLock { $0 } }

  /// Creates a session that answers with what `reply` makes of the request.
  public init(reply: @escaping @Sendable (Request) async throws(APISessionError) -> MomentsDetails) {
    self.reply = reply
  }

  /// Records the request and answers with the test's reply.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    let request = Request(isLiked: isLiked, momentID: momentID, userID: userID)
    recorded.withLock { $0.append(request) }
    return try await reply(request)
  }
}
