import Foundation
import Testing

/// Checks that `Laws.md` has all laws of a repository and names the tests that hold them, and that `Architecture.md`
/// names each folder of the module and each type of its core.
@Suite struct LawsTests {
  /// A row of the table of tests.
  private struct Row {
    let law: String
    let suite: String
    let test: String
  }

  private static let laws = (1...16).map { "L\($0)" }

  private static func article() throws -> MarkdownFile {
    try MarkdownFile("Sources/Repository/Repository.docc/Laws.md")
  }

  private static func rows() throws -> [Row] {
    try article().prose.compactMap { line in
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `")) }
      guard cells.count == 3, cells[0].hasPrefix("L") else { return nil }
      return Row(law: cells[0], suite: cells[1], test: cells[2])
    }
  }

  @Test func `The laws are numbered from L1 to L16 in order`() throws {
    let numbered = try Self.article().prose.compactMap { line in
      line.firstMatch(of: /^- \*\*(L\d+)\b/).map { String($0.1) }
    }
    #expect(numbered == Self.laws)
  }

  @Test func `Each law is held by a test, and each test exists`() throws {
    let rows = try Self.rows()
    for law in Self.laws { #expect(rows.contains { $0.law == law }, "No test holds \(law).") }
    let paths = ["RepositoryTests", "DataStoreTests", "MomentsTests"].flatMap { module in
      SourceTree.files(in: "Tests/\(module)", withSuffix: "Tests.swift")
    }
    for (suite, rowsOfSuite) in Dictionary(grouping: rows, by: \.suite) {
      let path = paths.first { $0.hasSuffix("/\(suite).swift") }
      let names = try path.map { try SourceTree.testNames(in: $0) } ?? []
      for row in rowsOfSuite {
        #expect(Self.laws.contains(row.law), "“\(row.test)” holds \(row.law), which isn't a law.")
        #expect(names.contains(row.test), "\(row.law): there is no test “\(row.test)” in \(suite).")
      }
    }
  }

  @Test func `Each law that a test refers to exists`() throws {
    for path in SourceTree.files(in: "Tests/RepositoryTests", withSuffix: ".swift") {
      // Most lines have no “L”, and need not be searched by a regular expression.
      for line in try SourceTree.lines(of: path) where line.utf8.contains(UInt8(ascii: "L")) {
        for match in line.matches(of: /(?:^|[^A-Za-z0-9_])(L[0-9]+)/) {
          #expect(Self.laws.contains(String(match.1)), "\(path) refers to \(match.1), which isn't in Laws.md.")
        }
      }
    }
  }

  @Test func `The architecture names each folder of the module`() throws {
    let article = try MarkdownFile("Sources/Repository/Repository.docc/Architecture.md")
    let folders = SourceTree.files(in: "Sources/Repository", withSuffix: ".swift").compactMap { path in
      let parts = path.split(separator: "/")
      return parts.count > 3 ? String(parts[2]) : nil
    }
    for folder in Set(folders).sorted() {
      #expect(article.prose.contains { $0.hasPrefix("| `\(folder)/` |") }, "\(article) doesn't name \(folder).")
    }
  }

  @Test func `The architecture names each type of the core`() throws {
    let article = try MarkdownFile("Sources/Repository/Repository.docc/Architecture.md")
    let names = Set(article.prose.flatMap { $0.split { !$0.isLetter && !$0.isNumber }.map(String.init) })
    var types: [String] = []
    for path in SourceTree.files(in: "Sources/Repository/Core", withSuffix: ".swift") {
      // The declarations inside a type are indented.
      for line in try SourceTree.lines(of: path) where line.first?.isLetter ?? false || line.hasPrefix("@") {
        let declaration = line.firstMatch(of: /^(?:@?\w+ )*(?:struct|class|enum|actor|protocol) (\w+)/)
        if let declaration { types.append(String(declaration.1)) }
      }
    }
    #expect(types.contains("SyncCore"))
    for type in types { #expect(names.contains(type), "\(article) doesn't name \(type).") }
  }
}
