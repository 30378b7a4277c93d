public import Repository

/// The source of the comments on posts, whose keys are the ids of the posts.
public struct CommentsSource: PagedSource, MutableSource {
  /// A user's change of the comments on a post.
  public enum Mutation: RepositoryMutation, Equatable {
    /// Adds a comment as the newest one.
    case add(Comment)
    /// Replaces the text of a comment.
    case edit(Comment.ID, text: String)
    /// Deletes a comment.
    case delete(Comment.ID)

    /// Applies the change.
    ///
    /// An edit or a deletion has no effect if the comment isn't loaded or was deleted.
    public func apply(to comments: inout Paged<Comment>) {
      switch self {
      case .add(let comment): comments.insertFirst(comment)
      case .edit(let id, let text): comments.update(id) { $0.text = text }
      case .delete(let id): comments.remove(id)
      }
    }
  }

  /// An empty page, so that a new comment is visible at once even if the post's comments were never loaded.
  public static var empty: Paged<Comment>? { Paged() }

  /// The collection of the comments in the store.
  public let name = "comments"
  let client: any CommentsClient

  /// Creates a source over a client.
  public init(_ client: any CommentsClient) { self.client = client }

  /// Fetches a page.
  public func fetch(_ postID: String, after cursor: String?, limit: Int) async throws(CommentsError) -> Paged<Comment> {
    let page = try await client.comments(on: postID, after: cursor, limit: limit)
    return Paged(page.comments, nextCursor: page.nextCursor, previousCursor: page.previousCursor)
  }

  /// Sends a change.
  ///
  /// The server replies without a value, so the repository applies the change to the stored value itself. It fetches
  /// the value instead if nothing is stored, or if the stored value may already include the change.
  public func send(
    _ mutation: Mutation, to postID: String, id: MutationID
  ) async throws(CommentsError) -> MutationReply<Paged<Comment>> {
    switch mutation {
    case .add(let comment): try await client.add(comment, to: postID, requestID: id.rawValue)
    case .edit(let commentID, let text):
      try await client.edit(commentID, text: text, on: postID, requestID: id.rawValue)
    case .delete(let commentID): try await client.delete(commentID, from: postID, requestID: id.rawValue)
    }
    return .done
  }

  /// Returns what an error says about a change: the server refused it, may have made it, or didn't receive it.
  public func disposition(of failure: CommentsError) -> FailureDisposition {
    if failure == .refused { return .refused }
    return failure == .lostReply ? .unknownOutcome : .retryLater()
  }
}
