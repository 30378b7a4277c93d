import Foundation
import Testing

/// Checks that the table in `EverySystem.md` has all systems of the original apps and names existing tests.
@Suite struct EverySystemTests {
  private struct Row {
    let number: Int
    let testNames: [String]
  }

  private static func rows() throws -> [Row] {
    try MarkdownFile("Sources/Moments/Moments.docc/EverySystem.md").prose.compactMap { line in
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 4, let number = Int(cells[0]) else { return nil }
      return Row(number: number, testNames: cells[3].matches(of: /`([^`]+)`/).map { String($0.1) })
    }
  }

  /// Returns the names of all tests in files whose names end with `Tests.swift`.
  private static func testNames() throws -> Set<String> {
    let files = SourceTree.files(in: "Tests", withSuffix: "Tests.swift").filter { !$0.contains(".build/") }
    return try Set(files.flatMap { try SourceTree.testNames(in: $0) })
  }

  @Test func `The table has one row for each of the 54 systems, in order`() throws {
    #expect(try Self.rows().map(\.number) == Array(1...54))
  }

  @Test func `Every row names existing tests`() throws {
    let existingNames = try Self.testNames()
    for row in try Self.rows() {
      #expect(!row.testNames.isEmpty, "Row \(row.number) names no test.")
      for name in row.testNames {
        #expect(existingNames.contains(name), "Row \(row.number): there is no test “\(name)”.")
      }
    }
  }
}
