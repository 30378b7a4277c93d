import Testing

/// The parts of the scripts in `.ci` are those that the workflows run and that `CONTRIBUTING.md` lists.
@Suite struct ChecksTests {
  @Test(arguments: [("run", "ci"), ("long", "long")])
  func `A workflow runs every part of its script, and each part is documented`(
    script: String, workflow: String
  ) throws {
    let parts = try Self.words(in: ".ci/\(script)", between: "parts=(", and: ")")
    let matrix = try Self.words(in: ".github/workflows/\(workflow).yml", between: "part: [", and: "]")
    #expect(!parts.isEmpty)
    #expect(Set(matrix) == Set(parts))
    let contributing = try MarkdownFile(".github/CONTRIBUTING.md").prose.joined(separator: "\n")
    for part in parts { #expect(contributing.contains("`\(part)`"), "CONTRIBUTING.md doesn't mention \(part).") }
  }

  /// Returns the words between two texts in the first line that begins with the first text.
  private static func words(in path: String, between start: String, and end: String) throws -> [String] {
    for line in try SourceTree.lines(of: path) {
      let text = line.drop { $0 == " " }
      guard text.hasPrefix(start), text.hasSuffix(end) else { continue }
      return text.dropFirst(start.count).dropLast(end.count).split { ", ".contains($0) }.map { String($0) }
    }
    return []
  }
}
