import Testing

@Suite struct ChangelogTests {
  @Test func `The changelog's newest version is the version of the moments command`() throws {
    let newest = try MarkdownFile("CHANGELOG.md").lines.lazy.compactMap { line in
      line.firstMatch(of: /^## (\d+\.\d+\.\d+) – \d{4}-\d{2}-\d{2}$/).map { String($0.1) }
    }.first
    let command = try Repository.lines(of: "Sources/MomentsCommand/MomentsCommand.swift").lazy.compactMap { line in
      line.firstMatch(of: /^ *static let version = "(.+)"$/).map { String($0.1) }
    }.first
    #expect(try #require(newest) == #require(command))
  }
}
