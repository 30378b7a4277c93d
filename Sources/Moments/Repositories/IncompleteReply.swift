public import GraphQLClient

/// A reply of the server that counts although a part of it is missing, as ``MomentsRepo/incompleteReplies`` reports it.
public struct IncompleteReply: Hashable, Sendable {
  /// The request that the server replied to.
  public enum Request: Hashable, Sendable {
    /// A fetch of the user's complete timeline, or of a page of it.
    case fetch(userID: String)
    /// A like.
    case like(MomentLike)
  }

  /// The request that the server replied to.
  public let request: Request
  /// The errors that the server reported beside the timeline, usually one for each missing field.
  public let errors: [GraphQLError]
  /// The reason why the timeline in the reply can't be read; `nil` if it was read.
  ///
  /// Only the reply to a like counts in this case: the server has made the change, and the timeline is fetched.
  public let unreadableReason: String?

  /// Creates an incomplete reply.
  public init(request: Request, errors: [GraphQLError], unreadableReason: String? = nil) {
    self.request = request
    self.errors = errors
    self.unreadableReason = unreadableReason
  }
}

extension IncompleteReply: CustomStringConvertible {
  /// A single-line description for a log.
  public var description: String {
    let subject =
      switch request {
      case .fetch(let userID): "The timeline of \(userID)"
      case .like(let like): "The timeline after the like of \(like.momentID)"
      }
    let problem = unreadableReason.map { ["can't be read: \($0)"] } ?? ["is incomplete"]
    let reasons = errors.map(\.description).joined(separator: "; ")
    return ([subject] + problem).joined(separator: " ") + (reasons.isEmpty ? "" : ": " + reasons)
  }
}
