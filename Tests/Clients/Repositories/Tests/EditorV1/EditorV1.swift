internal import Editor
internal import IssueTracker
internal import Repository

/// The first version of the editor; see `Editor` for its arguments.
@main enum EditorV1 {
  enum Edit: VersionedEdit {
    case comment(String)
    /// Has another name in the second version.
    case retitle(String)
    /// Has another field in the second version.
    case explain(String)
    /// Lacks a field in the second version.
    case describe(String, revision: Int)

    init(kind: Int, mark: String) {
      switch kind % 4 {
      case 0: self = .comment(mark)
      case 1: self = .retitle(mark)
      case 2: self = .explain(mark)
      default: self = .describe(mark, revision: kind)
      }
    }

    typealias Value = IssueDetail

    var change: IssueChange {
      switch self {
      case .comment(let mark): .comment(mark)
      case .retitle(let mark): .title(mark)
      case .explain(let mark): .reason(mark)
      case .describe(let mark, _): .body(mark)
      }
    }
  }

  static func main() async throws {
    try await Editor<Edit>.run(Array(CommandLine.arguments.dropFirst()))
  }
}
