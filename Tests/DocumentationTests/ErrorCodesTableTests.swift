import Testing

@testable import GraphQLClient

/// The table of `ErrorCodes.md` has the names of `GraphQLErrorCodes.standard`, under their meanings.
@Suite struct ErrorCodesTableTests {
  @Test func `The article lists every name of the standard table under its meaning, and no other`() throws {
    let article = try MarkdownFile("Sources/GraphQLClient/GraphQLClient.docc/ErrorCodes.md")
    let section = article.lines.drop { $0 != "## The standard table" }.dropFirst().prefix { !$0.hasPrefix("## ") }
    let rows = section.filter { $0.hasPrefix("| ") }.map { row in
      row.split(separator: "|", omittingEmptySubsequences: false).dropFirst(2).dropLast()
    }
    let header = try #require(rows.first)
    var listed: [GraphQLErrorCodes.Meaning: Set<String>] = [:]
    for row in rows.dropFirst(2) {
      #expect(row.count == header.count)
      for (column, cell) in zip(header, row) {
        let meaning = try #require(Self.meanings[Self.names(in: column).first ?? ""])
        listed[meaning, default: []].formUnion(Self.names(in: cell))
      }
    }
    #expect(listed == GraphQLErrorCodes.standardNames.mapValues { Set($0) })
  }

  private static let meanings = Dictionary(
    uniqueKeysWithValues: GraphQLErrorCodes.Meaning.allCases.map { ("\($0)", $0) })

  /// Returns the texts between backticks.
  private static func names(in cell: Substring) -> [String] {
    cell.matches(of: /`([^`]+)`/).map { String($0.1) }
  }
}
