public import IssueTracker
public import Repository

/// An edit of an issue, as one version of the editor stores it.
public protocol VersionedEdit: RepositoryMutation where Value: ShownIssue {
  /// Creates an edit.
  ///
  /// - Parameters:
  ///   - kind: Selects one of the kinds of edits that the version makes.
  ///   - mark: A text that no other edit has.
  init(kind: Int, mark: String)

  /// What the edit changes on the server.
  var change: IssueChange { get }
}

extension VersionedEdit {
  /// Applies the change.
  public func apply(to value: inout Value) {
    switch change {
    case .comment(let mark):
      let comment = IssueComment(id: mark, text: mark)
      if !value.detail.comments.contains(comment) { value.detail.comments.append(comment) }
    case .title(let mark): value.detail.issue.title = mark
    case .body(let mark): value.detail.body = mark
    case .reason(let mark): value.detail.issue.reason = mark
    }
  }
}

/// A change of an issue, with the text that the server gets.
public enum IssueChange: Sendable {
  case comment(String)
  case title(String)
  case body(String)
  case reason(String)

  var mark: String {
    switch self {
    case .comment(let mark), .title(let mark), .body(let mark), .reason(let mark): mark
    }
  }
}

/// An issue, as one version of the editor stores it.
public protocol ShownIssue: Codable, Equatable, Sendable {
  /// The issue as the server has it.
  var detail: IssueDetail { get set }

  /// Creates the value of an issue that the server has sent.
  init(_ detail: IssueDetail)
}

extension IssueDetail: ShownIssue {
  /// The issue itself.
  public var detail: IssueDetail {
    get { self }
    set { self = newValue }
  }

  /// Creates the value of an issue that the server has sent.
  public init(_ detail: IssueDetail) { self = detail }
}
