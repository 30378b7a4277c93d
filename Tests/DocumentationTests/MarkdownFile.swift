import Foundation

/// A Markdown text of the Git repository, with its blocks of code.
struct MarkdownFile {
  /// The path from the repository's root.
  let path: String
  let lines: [String]

  /// Reads a file by its path from the repository's root.
  init(_ path: String) throws {
    self.init(path: path, lines: try SourceTree.lines(of: path))
  }

  init(path: String, lines: [String]) {
    self.path = path
    self.lines = lines
  }

  /// The file's name without its extension.
  var name: String { String(path.split(separator: "/").last!.split(separator: ".").first!) }

  /// A fenced block of code.
  struct CodeBlock {
    /// The text after the opening fence.
    let language: String
    /// The lines, without indentation.
    var lines: [String] = []
  }

  /// All fenced blocks, in order.
  var codeBlocks: [CodeBlock] {
    var blocks: [CodeBlock] = []
    var openBlock: CodeBlock?
    for line in lines.map({ $0.trimmingCharacters(in: .whitespaces) }) {
      if openBlock != nil {
        if line == "```" {
          blocks.append(openBlock!)
          openBlock = nil
        } else {
          openBlock!.lines.append(line)
        }
      } else if line.hasPrefix("```") {
        openBlock = CodeBlock(language: String(line.dropFirst(3)))
      }
    }
    return blocks
  }

  /// The lines of each code block of a language, without indentation.
  func blocks(of language: String) -> [[String]] {
    codeBlocks.filter { $0.language == language }.map(\.lines)
  }

  /// The lines outside the fenced blocks.
  var prose: [String] {
    var isInBlock = false
    return lines.filter { line in
      let isFence = line.trimmingCharacters(in: .whitespaces).hasPrefix("```")
      defer { if isFence { isInBlock.toggle() } }
      return !isInBlock && !isFence
    }
  }
}

extension MarkdownFile: CustomStringConvertible {
  var description: String { path }
}

/// The files of the Git repository that contains these tests.
enum SourceTree {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  static func lines(of path: String) throws -> [String] {
    try String(contentsOf: root.appending(path: path), encoding: .utf8).components(separatedBy: "\n")
  }

  /// Returns the names of the tests in a file that are written in backticks.
  static func testNames(in path: String) throws -> [String] {
    var names: [String] = []
    // An attribute with arguments may be some lines above the function.
    var isTest = false
    for line in try lines(of: path) {
      if line.drop(while: { $0 == " " }).hasPrefix("@Test") { isTest = true }
      guard isTest, let start = line.range(of: "func `") else { continue }
      names.append(String(line[start.upperBound...].prefix { $0 != "`" }))
      isTest = false
    }
    return names
  }

  static func exists(_ path: String) -> Bool {
    FileManager.default.fileExists(atPath: root.appending(path: path).path(percentEncoded: false))
  }

  /// Returns the paths below a folder that end with a suffix, in alphabetical order.
  ///
  /// The paths are relative to the repository's root.
  static func files(in folder: String, withSuffix suffix: String) -> [String] {
    let folderPath = root.appending(path: folder).path(percentEncoded: false)
    let paths = FileManager.default.enumerator(atPath: folderPath)?.compactMap { $0 as? String } ?? []
    return paths.filter { $0.hasSuffix(suffix) }.sorted().map { "\(folder)/\($0)" }
  }
}

extension [String] {
  /// Whether these lines contain each import of an example, and the rest of the example consecutively.
  func contains(example: [String]) -> Bool {
    let rest = example.drop { $0.isEmpty || $0.hasPrefix("import ") }
    return example.prefix(example.count - rest.count).allSatisfy { $0.isEmpty || contains($0) }
      && contains(block: Array(rest))
  }

  /// Whether the lines of `block`, which have no indentation, appear consecutively in these lines, whose indentation is
  /// ignored.
  func contains(block: [String]) -> Bool {
    let trimmed = map { $0.trimmingCharacters(in: .whitespaces) }
    guard !block.isEmpty, trimmed.count >= block.count else { return false }
    return (0...trimmed.count - block.count).contains { start in
      trimmed[start..<start + block.count].elementsEqual(block)
    }
  }
}
