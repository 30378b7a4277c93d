public import Foundation

/// A comment on a post.
public struct Comment: Codable, Equatable, Identifiable, Sendable {
  /// Given by the app that made the comment, so that it has its id before the server knows it.
  public let id: UUID
  /// The name of the user who wrote it.
  public let author: String
  /// What it says.
  public var text: String

  /// Creates a comment.
  public init(id: UUID = UUID(), author: String, text: String) {
    (self.id, self.author, self.text) = (id, author, text)
  }
}

/// A page of comments, as the server sends it.
public struct CommentsPage: Sendable {
  /// The comments of the page alone, the newest first.
  public let comments: [Comment]
  /// Where the next page begins; `nil` if there is none.
  public let nextCursor: String?
  /// Where the page with newer comments ends; `nil` if there is none.
  public let previousCursor: String?

  /// Creates a page.
  public init(_ comments: [Comment], nextCursor: String?, previousCursor: String?) {
    (self.comments, self.nextCursor, self.previousCursor) = (comments, nextCursor, previousCursor)
  }
}

/// Why a request for comments failed.
public enum CommentsError: Error, Hashable, Sendable {
  /// The request didn't leave the device.
  case offline
  /// The request was sent, and the connection broke before the reply was read.
  case lostReply
  /// The server will never do it, because the user may not or the request is wrong.
  case refused
}

/// Stands for the REST client that an app has already.
///
/// It knows nothing of repositories. All that a repository asks of it is that a change has an id, and that the server makes
/// a change with an id once.
public protocol CommentsClient: Sendable {
  /// Fetches a page of the comments on a post, the newest first.
  func comments(on postID: String, after cursor: String?, limit: Int) async throws(CommentsError) -> CommentsPage

  /// Fetches the page of the comments in front of one, the newest first.
  func comments(on postID: String, before cursor: String, limit: Int) async throws(CommentsError) -> CommentsPage

  /// Adds a comment to a post.
  func add(_ comment: Comment, to postID: String, requestID: String) async throws(CommentsError)

  /// Replaces the text of a comment.
  func edit(_ id: Comment.ID, text: String, on postID: String, requestID: String) async throws(CommentsError)

  /// Deletes a comment.
  func delete(_ id: Comment.ID, from postID: String, requestID: String) async throws(CommentsError)
}
