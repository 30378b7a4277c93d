internal import DataStore
internal import Editor
internal import Foundation
internal import IssueTracker
internal import Repository

/// The second version of the editor; see `Editor` for its arguments, which follow the kind of the update.
///
/// - `plain`: It can't read some edits of the first version, and stores the same values.
/// - `migratingEdits`: It can read all edits of the first version, which can read none of its own.
/// - `migratingAll`: So are the values.
@main enum EditorV2 {
  enum PlainEdit: VersionedEdit {
    case comment(String)
    case rename(String)
    case explain(String, isFinal: Bool)
    case describe(String)
    /// Is new.
    case annotate(String)

    init(kind: Int, mark: String) {
      switch kind % 5 {
      case 0: self = .comment(mark)
      case 1: self = .rename(mark)
      case 2: self = .explain(mark, isFinal: true)
      case 3: self = .describe(mark)
      default: self = .annotate(mark)
      }
    }

    typealias Value = IssueDetail

    var change: IssueChange {
      switch self {
      case .comment(let mark), .annotate(let mark): .comment(mark)
      case .rename(let mark): .title(mark)
      case .explain(let mark, _): .reason(mark)
      case .describe(let mark): .body(mark)
      }
    }
  }

  /// An edit of the first version, as far as its form has changed.
  private enum EarlierEdit: Decodable {
    case retitle(String)
    case explain(String)
  }

  private static let schema = StoreSchema(
    version: 2,
    migrations: [
      StoreMigration(from: 1) { json in
        switch try? JSONDecoder().decode(EarlierEdit.self, from: json) {
        case .retitle(let mark): try JSONEncoder().encode(PlainEdit.rename(mark))
        case .explain(let mark): try JSONEncoder().encode(PlainEdit.explain(mark, isFinal: false))
        case nil: json
        }
      }
    ])

  struct MigratingEdit<Value: ShownIssue>: VersionedEdit, VersionedValue {
    static var schema: StoreSchema { EditorV2.schema }

    let edit: PlainEdit

    init(kind: Int, mark: String) { edit = PlainEdit(kind: kind, mark: mark) }

    init(from decoder: any Decoder) throws { edit = try PlainEdit(from: decoder) }

    func encode(to encoder: any Encoder) throws { try edit.encode(to: encoder) }

    var change: IssueChange { edit.change }
  }

  /// The value of an issue, which has another schema than that of the first version.
  struct Screen: ShownIssue, VersionedValue {
    static let schema = StoreSchema(
      version: 2, migrations: [StoreMigration(from: 1, decoding: IssueDetail.self) { Screen($0) }])

    var detail: IssueDetail

    init(_ detail: IssueDetail) { self.detail = detail }
  }

  static func main() async throws {
    let arguments = Array(CommandLine.arguments.dropFirst(2))
    switch CommandLine.arguments.dropFirst().first {
    case "plain": try await Editor<PlainEdit>.run(arguments)
    case "migratingEdits": try await Editor<MigratingEdit<IssueDetail>>.run(arguments)
    case "migratingAll": try await Editor<MigratingEdit<Screen>>.run(arguments)
    default: fatalError("no kind of the update")
    }
  }
}
