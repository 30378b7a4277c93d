internal import IssueTracker
internal import Repository

/// The source of the issues that the editors share.
struct EditorSource<Edit: VersionedEdit>: MutableSource {
  let name = "screens"
  let client: TrackerClient

  func fetch(_ issue: String) async throws(TrackerError) -> Edit.Value { Edit.Value(try await client.issue(issue)) }

  func send(
    _ edit: Edit, to issue: String, id: MutationID
  ) async throws(TrackerError) -> MutationReply<Edit.Value> {
    let detail =
      switch edit.change {
      case .comment(let mark):
        try await client.add(IssueComment(id: mark, text: mark), to: issue, requestID: id.rawValue)
      case .title(let mark): try await client.edit(issue, ["title": mark], requestID: id.rawValue)
      case .body(let mark): try await client.edit(issue, ["body": mark], requestID: id.rawValue)
      case .reason(let mark): try await client.edit(issue, ["reason": mark], requestID: id.rawValue)
      }
    return .value(Edit.Value(detail))
  }

  func orderingKey(of edit: Edit, on issue: String) -> String { Self.lane(of: issue) }

  func disposition(of failure: TrackerError) -> FailureDisposition {
    IssueDetailSource(client).disposition(of: failure)
  }

  /// The lane of an issue, which several issues share: the issue `l0-k1` is in the lane `l0`.
  static func lane(of issue: String) -> String { String(issue.prefix { $0 != "-" }) }
}
