public import Repository

/// The source of the lists of issues, whose keys are the ids of the projects.
public struct IssuesSource: PagedSource, MutableSource {
  /// A user's change of a list of issues.
  public enum Mutation: RepositoryMutation, Equatable {
    /// Creates an issue as the newest one.
    case create(Issue)
    /// Replaces the title of an issue.
    case rename(Issue.ID, title: String)
    /// Closes or reopens an issue.
    case setState(Issue.ID, Issue.State, reason: String)
    /// Deletes an issue.
    case delete(Issue.ID)

    /// Applies the change.
    ///
    /// A change of an issue that isn't loaded has no effect.
    public func apply(to issues: inout Paged<Issue>) {
      switch self {
      case .create(let issue):
        // An issue that the server has may have been changed since.
        issues.insertFirst(issue)
      case .rename(let id, let title): issues.update(id) { $0.title = title }
      case .setState(let id, let state, let reason): issues.update(id) { ($0.state, $0.reason) = (state, reason) }
      case .delete(let id): issues.remove(id)
      }
    }
  }

  /// An empty list, so that a new issue is visible at once even if the project was never loaded.
  public static var empty: Paged<Issue>? { Paged() }

  /// The collection of the lists in the store.
  public let name = "issues"
  private let client: TrackerClient

  /// Creates a source over a client.
  public init(_ client: TrackerClient) { self.client = client }

  /// Fetches a page.
  public func fetch(_ project: String, after cursor: String?, limit: Int) async throws(TrackerError) -> Paged<Issue> {
    let page = try await client.issues(of: project, after: cursor, limit: limit)
    return Paged(page.issues, nextCursor: page.next)
  }

  /// Sends a change, and takes the issue as the server has it now.
  public func send(
    _ mutation: Mutation, to project: String, id: MutationID
  ) async throws(TrackerError) -> MutationReply<Paged<Issue>> {
    switch mutation {
    case .create(let issue):
      let created = try await client.create(issue, in: project, requestID: id.rawValue).issue
      return .patch { $0.upsertFirst(created) }
    case .rename(let issue, let title):
      let renamed = try await client.edit(issue, ["title": title], requestID: id.rawValue).issue
      return .patch { $0.update(issue) { $0 = renamed } }
    case .setState(let issue, let state, let reason):
      let fields = ["state": state.rawValue, "reason": reason]
      let changed = try await client.edit(issue, fields, requestID: id.rawValue).issue
      return .patch { $0.update(issue) { $0 = changed } }
    case .delete(let issue):
      try await client.delete(issue, requestID: id.rawValue)
      return .done
    }
  }

  /// The changes of an issue are sent in order; those of different issues don't wait for each other.
  public func orderingKey(of mutation: Mutation, on project: String) -> String { mutation.issue }

  /// Returns what an error says about a change.
  public func disposition(of failure: TrackerError) -> FailureDisposition { failure.disposition }
}

extension IssuesSource.Mutation {
  /// The id of the changed issue.
  public var issue: Issue.ID {
    switch self {
    case .create(let issue): issue.id
    case .rename(let id, _), .setState(let id, _, _), .delete(let id): id
    }
  }
}
