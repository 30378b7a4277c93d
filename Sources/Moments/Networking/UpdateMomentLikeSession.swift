internal import Foundation
public import GraphQLClient

/// Likes and unlikes moments on a GraphQL server.
///
/// Every request carries an `Idempotency-Key` header, so that a server that knows the header makes a change once,
/// however often the request for it arrives.
public struct UpdateMomentLikeSession: UpdateMomentLikeSessionType {
  private let apiSession: APISession

  /// Creates a session.
  ///
  /// - Parameter apiSession: The client of the server.
  public init(apiSession: APISession) {
    self.apiSession = apiSession
  }

  /// Sets whether a user likes a moment, with one request under a new key.
  ///
  /// - Parameters:
  ///   - isLiked: Whether the user likes the moment from now on.
  ///   - momentID: The server's identifier of the moment.
  ///   - userID: The server's identifier of the user.
  /// - Returns: The timeline after the change, with likes.
  /// - Throws: `APISessionError`; an unknown moment or user is `APISessionError.graphQL`.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await updateLike(isLiked, momentID: momentID, fromUserID: userID, idempotencyKey: UUID().uuidString)
  }

  /// Sets whether a user likes a moment, with one request under the given key.
  ///
  /// - Parameters:
  ///   - isLiked: Whether the user likes the moment from now on.
  ///   - momentID: The server's identifier of the moment.
  ///   - userID: The server's identifier of the user.
  ///   - idempotencyKey: The value of the `Idempotency-Key` header.
  /// - Returns: The timeline after the change, with likes.
  /// - Throws: `APISessionError`; an unknown moment or user is `APISessionError.graphQL`.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails {
    typealias Document = MomentsDocument.UpdateMomentLike
    return try await apiSession.post(
      document: Document.text,
      operationName: Document.operationName,
      variables: Document.Variables(momentID: momentID, userID: userID, isLiked: isLiked),
      headers: ["Idempotency-Key": idempotencyKey],
      as: Document.Reply.self
    ).updateMomentLike
  }
}
