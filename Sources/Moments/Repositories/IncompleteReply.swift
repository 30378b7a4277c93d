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

  /// Creates an incomplete reply.
  public init(request: Request, errors: [GraphQLError]) {
    self.request = request
    self.errors = errors
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
    return "\(subject) is incomplete: \(errors.map(\.description).joined(separator: "; "))"
  }
}
