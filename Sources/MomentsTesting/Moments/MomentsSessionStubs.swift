public import GraphQLClient
public import Moments
internal import Multicast

/// A session that replies with the result of a closure, and records its requests.
public final class GetMomentsByUserIDSessionStub: GetMomentsByUserIDSessionType {
  private let recordedUserIDs = Lock<[String]>([])
  private let reply: @Sendable (String) async throws(APISessionError) -> MomentsDetails

  /// The user ids of all requests, in order.
  public var requestedUserIDs: [String] { recordedUserIDs.withLock { $0 } }

  /// Creates a session.
  ///
  /// - Parameter reply: A closure that takes the user id of a request, and returns the reply or throws.
  public init(reply: @escaping @Sendable (String) async throws(APISessionError) -> MomentsDetails) {
    self.reply = reply
  }

  /// Records the request, and returns the closure's reply.
  public func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    recordedUserIDs.withLock { $0.append(userID) }
    return try await reply(userID)
  }
}

/// A session that replies with the result of a closure, and records its requests.
public final class UpdateMomentLikeSessionStub: UpdateMomentLikeSessionType {
  /// The arguments of a call of `updateLike`.
  public struct Request: Sendable, Hashable {
    /// Whether the user likes the moment from now on.
    public let isLiked: Bool
    /// The identifier of the moment.
    public let momentID: String
    /// The identifier of the user.
    public let userID: String

    /// Creates a request, for comparison with a recorded one.
    public init(isLiked: Bool, momentID: String, userID: String) {
      self.isLiked = isLiked
      self.momentID = momentID
      self.userID = userID
    }
  }

  private let recordedRequests = Lock<[Request]>([])
  private let reply: @Sendable (Request) async throws(APISessionError) -> MomentsDetails

  /// All requests, in order.
  public var requests: [Request] { recordedRequests.withLock { $0 } }

  /// Creates a session.
  ///
  /// - Parameter reply: A closure that returns the reply to a request, or throws.
  public init(reply: @escaping @Sendable (Request) async throws(APISessionError) -> MomentsDetails) {
    self.reply = reply
  }

  /// Records the request, and returns the closure's reply.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    let request = Request(isLiked: isLiked, momentID: momentID, userID: userID)
    recordedRequests.withLock { $0.append(request) }
    return try await reply(request)
  }
}
