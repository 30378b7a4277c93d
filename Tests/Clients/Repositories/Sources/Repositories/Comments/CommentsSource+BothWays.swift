internal import Foundation
public import Repository

/// Lets a long list of comments stay as short as what the user can see of it.
extension CommentsSource: BidirectionalPagedSource {
  /// Fetches the page in front of a comment.
  public func fetch(_ postID: String, before cursor: String, limit: Int) async throws(CommentsError) -> Paged<Comment> {
    let page = try await client.comments(on: postID, before: cursor, limit: limit)
    return Paged(page.comments, nextCursor: page.nextCursor, previousCursor: page.previousCursor)
  }

  /// Returns the id of a comment, by which the server knows where a page begins and ends.
  public func cursor(of comment: Comment) -> String { comment.id.uuidString }
}
