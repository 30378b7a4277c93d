import Foundation
import Testing

@Suite struct ReadmeTests {
  let readme: MarkdownFile

  init() throws {
    readme = try MarkdownFile("README.md")
  }

  @Test func `Every Swift block of the README is compiled`() throws {
    let compiledLines = try SourceTree.lines(of: "Tests/DocumentationTests/ReadmeExamples.swift")
    let blocks = readme.blocks(of: "swift")
    #expect(blocks.count == 2)
    for block in blocks {
      #expect(
        compiledLines.contains(example: block), "Not in ReadmeExamples.swift:\n\(block.joined(separator: "\n"))")
    }
  }

  @Test(arguments: ["README.md", ".github/CONTRIBUTING.md"])
  func `Every command is run in continuous integration`(path: String) throws {
    let scripts = try [".ci/run", ".ci/long"].flatMap { try SourceTree.lines(of: $0) }
    let scriptLines = Set(scripts.map { $0.trimmingCharacters(in: .whitespaces) })
    let commands = try MarkdownFile(path).blocks(of: "sh").flatMap(\.self)
    // If no command were found, the loop would check nothing.
    #expect(commands.contains("swift test"))
    for command in commands { #expect(scriptLines.contains(command), "Not in .ci/run or .ci/long: \(command)") }
  }

  @Test func `The first two commands show the timeline and run the tests`() {
    #expect(readme.blocks(of: "sh").flatMap(\.self).prefix(2) == ["swift run moments", "swift test"])
  }

  @Test func `The README has at most 200 lines`() {
    #expect(readme.lines.count <= 200)
  }

  @Test(.timeLimit(.minutes(15))) func `The first example terminates`() async {
    await ReadmeExamples.thermometer()
  }
}
