public import Foundation

/// A comment on a post.
public struct Comment: Codable, Equatable, Identifiable, Sendable {
  /// The id, which the app assigns, so that a comment has one before it reaches the server.
  public let id: UUID
  /// The name of the user who wrote the comment.
  public let author: String
  /// The text of the comment.
  public var text: String

  /// Creates a comment.
  public init(id: UUID = UUID(), author: String, text: String) {
    (self.id, self.author, self.text) = (id, author, text)
  }
}

/// A page of comments, as the server sends it.
public struct CommentsPage: Sendable {
  /// The comments of this page, the newest first.
  public let comments: [Comment]
  /// The cursor after which the next page begins; `nil` if there is none.
  public let nextCursor: String?
  /// The cursor before which the page with newer comments ends; `nil` if there is none.
  public let previousCursor: String?

  /// Creates a page.
  public init(_ comments: [Comment], nextCursor: String?, previousCursor: String?) {
    (self.comments, self.nextCursor, self.previousCursor) = (comments, nextCursor, previousCursor)
  }
}

/// The error of a failed request for comments.
public enum CommentsError: Error, Hashable, Sendable {
  /// The request didn't leave the device.
  case offline
  /// The request was sent, but the connection failed before the reply was read.
  case lostReply
  /// The server refused the request permanently, because it isn't permitted or is invalid.
  case refused
}

/// Represents the REST client that an app already has.
///
/// The client is independent of repositories. A repository only requires that each change has an id, the `requestID`,
/// and that the server makes a change at most once even if it receives the same `requestID` again.
public protocol CommentsClient: Sendable {
  /// Fetches the page of the comments that are just older than the comment at a cursor, the newest first.
  ///
  /// - Parameter cursor: The cursor; `nil` for the page of the newest comments.
  func comments(on postID: String, after cursor: String?, limit: Int) async throws(CommentsError) -> CommentsPage

  /// Fetches the page of the comments that are just newer than the comment at a cursor, the newest first.
  func comments(on postID: String, before cursor: String, limit: Int) async throws(CommentsError) -> CommentsPage

  /// Adds a comment to a post.
  func add(_ comment: Comment, to postID: String, requestID: String) async throws(CommentsError)

  /// Replaces the text of a comment.
  func edit(_ id: Comment.ID, text: String, on postID: String, requestID: String) async throws(CommentsError)

  /// Deletes a comment.
  func delete(_ id: Comment.ID, from postID: String, requestID: String) async throws(CommentsError)
}
