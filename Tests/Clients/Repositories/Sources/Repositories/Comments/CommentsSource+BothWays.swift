internal import Foundation
public import Repository

/// Fetches pages in both directions, so that comments that the user has scrolled past can be dropped and fetched again.
extension CommentsSource: BidirectionalPagedSource {
  /// Fetches the page before a comment.
  public func fetch(_ postID: String, before cursor: String, limit: Int) async throws(CommentsError) -> Paged<Comment> {
    let page = try await client.comments(on: postID, before: cursor, limit: limit)
    return Paged(page.comments, nextCursor: page.nextCursor, previousCursor: page.previousCursor)
  }

  /// Returns a comment's id, which the server uses as the comment's cursor.
  public func cursor(of comment: Comment) -> String { comment.id.uuidString }
}
