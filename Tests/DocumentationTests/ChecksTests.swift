import Testing

/// The parts of the scripts in `.ci` are those that the workflows run and that `CONTRIBUTING.md` lists.
@Suite struct ChecksTests {
  @Test(arguments: [("run", "ci"), ("long", "long")])
  func `A workflow runs every part of its script, and each part is documented`(script: String, workflow: String) throws
  {
    let parts = try #require(
      SourceTree.lines(of: ".ci/\(script)").lazy.compactMap { $0.firstMatch(of: /^parts=\((.+)\)$/)?.1 }.first)
    let names = parts.split(separator: " ")
    let matrix = try #require(
      SourceTree.lines(of: ".github/workflows/\(workflow).yml").lazy
        .compactMap { $0.firstMatch(of: /^ +part: \[(.+)\]$/)?.1 }.first)
    #expect(Set(matrix.split(separator: ", ")) == Set(names))
    let contributing = try MarkdownFile(".github/CONTRIBUTING.md").prose.joined(separator: "\n")
    for name in names { #expect(contributing.contains("`\(name)`"), "CONTRIBUTING.md doesn't mention \(name).") }
  }
}
