public import Repository

/// The source of the screens of issues, whose keys are the ids of the issues.
public struct IssueDetailSource: MutableSource {
  /// A user's change of an issue.
  public enum Mutation: RepositoryMutation, Equatable {
    /// Adds a comment as the newest one.
    case comment(IssueComment)
    /// Replaces the description, unless another client has changed the issue since a version.
    case describe(String, version: String?)

    /// Applies the change.
    public func apply(to detail: inout IssueDetail) {
      switch self {
      case .comment(let comment):
        guard !detail.comments.contains(comment) else { return }
        detail.comments.append(comment)
        detail.issue.commentCount += 1
      case .describe(let body, _): detail.body = body
      }
    }
  }

  /// The collection of the issues in the store.
  public let name = "issue"
  private let client: TrackerClient

  /// Creates a source over a client.
  public init(_ client: TrackerClient) { self.client = client }

  /// Fetches an issue.
  public func fetch(_ issue: Issue.ID) async throws(TrackerError) -> IssueDetail { try await client.issue(issue) }

  /// Sends a change, to which the server replies with the whole issue.
  public func send(
    _ mutation: Mutation, to issue: Issue.ID, id: MutationID
  ) async throws(TrackerError) -> MutationReply<IssueDetail> {
    switch mutation {
    case .comment(let comment): .value(try await client.add(comment, to: issue, requestID: id.rawValue))
    case .describe(let body, let version):
      .value(try await client.edit(issue, ["body": body], version: version, requestID: id.rawValue))
    }
  }

  /// Returns what an error says about a change.
  public func disposition(of failure: TrackerError) -> FailureDisposition { failure.disposition }
}
