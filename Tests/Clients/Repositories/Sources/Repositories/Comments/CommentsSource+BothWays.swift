internal import Foundation
public import Repository

/// Supports a long list of comments of which only the visible part is kept.
extension CommentsSource: BidirectionalPagedSource {
  /// Fetches the page before a comment.
  public func fetch(_ postID: String, before cursor: String, limit: Int) async throws(CommentsError) -> Paged<Comment> {
    let page = try await client.comments(on: postID, before: cursor, limit: limit)
    return Paged(page.comments, nextCursor: page.nextCursor, previousCursor: page.previousCursor)
  }

  /// Returns the id of a comment, which is the server's cursor.
  public func cursor(of comment: Comment) -> String { comment.id.uuidString }
}
