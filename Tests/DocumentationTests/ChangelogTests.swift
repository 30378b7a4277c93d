import Testing

@Suite struct ChangelogTests {
  @Test func `The changelog's newest version is the version of the moments command`() throws {
    let newestVersion = try MarkdownFile("CHANGELOG.md").lines.lazy.compactMap { line in
      line.firstMatch(of: /^## (\d+\.\d+\.\d+) – \d{4}-\d{2}-\d{2}$/).map { String($0.1) }
    }.first
    let commandSourceLines = try SourceTree.lines(of: "Sources/MomentsCommand/MomentsCommand.swift")
    let commandVersion = commandSourceLines.lazy.compactMap { line in
      line.firstMatch(of: /^ *static let version = "(.+)"$/).map { String($0.1) }
    }.first
    #expect(try #require(newestVersion) == #require(commandVersion))
  }
}
