import Foundation
import Testing

/// Compares the line counts in the README with the sources.
@Suite struct LineCountTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  private static func lines(of path: String) throws -> [String] {
    try String(contentsOf: root.appending(path: path), encoding: .utf8).split(separator: "\n").map {
      $0.trimmingCharacters(in: .whitespaces)
    }
  }

  /// Returns the number of lines of a file that are neither blank nor comments.
  private static func codeLineCount(of path: String) throws -> Int {
    try lines(of: path).count { !$0.isEmpty && !$0.hasPrefix("//") }
  }

  /// Returns the rows of the README's table: the file of each repository, and its number of code lines.
  private static func readmeCounts() throws -> [String: Int] {
    var counts: [String: Int] = [:]
    for line in try lines(of: "README.md") {
      guard let row = line.firstMatch(of: /^\|.*\| `([^`]+)` \| (\d+) \|$/) else { continue }
      counts[String(row.1)] = Int(row.2)
    }
    return counts
  }

  @Test func `The line counts in the README are those of the sources`() throws {
    let files = [
      "Comments/CommentsSource.swift", "Comments/CommentsSource+BothWays.swift", "Profile/ProfileRepository.swift",
      "Drafts/DraftsRepository.swift",
    ]
    var sourceCounts: [String: Int] = [:]
    for file in files { sourceCounts[file] = try Self.codeLineCount(of: "Sources/Repositories/\(file)") }
    #expect(try Self.readmeCounts() == sourceCounts)
  }

  @Test func `The comments source has at most 40 lines of code`() throws {
    #expect(try Self.codeLineCount(of: "Sources/Repositories/Comments/CommentsSource.swift") <= 40)
  }
}
