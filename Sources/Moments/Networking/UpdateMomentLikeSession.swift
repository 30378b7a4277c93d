internal import Foundation
public import GraphQLClient

/// A session that likes and unlikes moments on a GraphQL server.
///
/// Every request has an `Idempotency-Key` header. A server that supports the header makes each change once, even if it
/// receives the request several times.
public struct UpdateMomentLikeSession: UpdateMomentLikeSessionType {
  private let apiSession: APISession

  /// Creates a session.
  ///
  /// - Parameter apiSession: The client of the server.
  public init(apiSession: APISession) {
    self.apiSession = apiSession
  }

  /// Sets whether a user likes a moment, with one request under a new idempotency key.
  ///
  /// - Throws: An `APISessionError`; `APISessionError.graphQL` for an unknown moment or user.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await updateLike(isLiked, momentID: momentID, fromUserID: userID, idempotencyKey: UUID().uuidString)
  }

  /// Sets whether a user likes a moment, with one request under the given key.
  ///
  /// Sends the key as the value of the `Idempotency-Key` header.
  ///
  /// - Throws: An `APISessionError`; `APISessionError.graphQL` for an unknown moment or user.
  public func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await send(isLiked, momentID: momentID, userID: userID, idempotencyKey: idempotencyKey).data
  }

  /// Sets whether a user likes a moment, with one request under the given key, and returns the timeline together with
  /// the errors of its missing fields.
  ///
  /// A timeline that can't be read counts as the reply of a server that has made the change.
  ///
  /// - Throws: An `APISessionError`; `APISessionError.graphQL` for an unknown moment or user.
  public func updateLikeResponse(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> GraphQLResponse<GraphQLField<MomentsDetails>> {
    try await send(isLiked, momentID: momentID, userID: userID, idempotencyKey: idempotencyKey)
  }

  private func send<Timeline: Decodable & Sendable>(
    _ isLiked: Bool, momentID: String, userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> GraphQLResponse<Timeline> {
    typealias Document = MomentsDocument.UpdateMomentLike
    let response = try await apiSession.response(
      to: Document.text,
      operationName: Document.operationName,
      variables: Document.Variables(momentID: momentID, userID: userID, isLiked: isLiked),
      headers: ["Idempotency-Key": idempotencyKey],
      as: Document.Reply<Timeline>.self)
    return response.map(\.updateMomentLike)
  }
}
