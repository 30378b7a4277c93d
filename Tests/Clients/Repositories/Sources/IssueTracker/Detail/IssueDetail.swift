/// A comment on an issue.
public struct IssueComment: Codable, Equatable, Identifiable, Sendable {
  /// The id, which the app assigns.
  public let id: String
  /// The text.
  public let text: String

  /// Creates a comment.
  public init(id: String, text: String) {
    (self.id, self.text) = (id, text)
  }
}

/// An issue with all that its screen shows.
public struct IssueDetail: Codable, Equatable, Sendable {
  /// The issue.
  public var issue: Issue
  /// The description.
  public var body: String
  /// The comments, the oldest first.
  public var comments: [IssueComment]
  /// The version, which is the server's ETag.
  public var version: String?
}
