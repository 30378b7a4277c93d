import DataStore
import Testing

/// Checks that the Swift blocks of documentation comments appear in `DocCommentExamples.swift`, which is compiled.
@Suite struct DocCommentTests {
  static let sourceFiles = [
    "Multicast", "DataStore", "Repository", "GraphQLClient", "Moments", "SignIn", "Todo", "MulticastTesting",
    "DataStoreTesting", "RepositoryTesting", "MomentsTesting",
  ].flatMap {
    SourceTree.files(in: "Sources/\($0)", withSuffix: ".swift")
  }

  @Test(arguments: sourceFiles)
  func `Every Swift block of a comment is compiled`(path: String) throws {
    let examplesPath = "Tests/DocumentationTests/DocCommentExamples.swift"
    let compiledLines = try SourceTree.lines(of: examplesPath)
    for block in try comments(of: path).blocks(of: "swift") {
      #expect(compiledLines.contains(block: block), "Not in \(examplesPath):\n\(block.joined(separator: "\n"))")
    }
  }

  @Test func `Blocks are found in comments`() throws {
    #expect(try comments(of: "Sources/Multicast/MulticastStream.swift").blocks(of: "swift").count == 1)
  }

  @Test func `Examples that are run, not only compiled, have the expected results`() async throws {
    #expect(DocCommentExamples.currentValueChannel() == .loaded)
    #expect(try DocCommentExamples.storeKeyName() == "inbox.%4aake%2f0")
    #expect(StoreKey.inbox(of: "0").id == "0")
    let store = InMemoryStore()
    let queuedKey = StoreKey<Int>("queued")
    try await store.save(1, for: queuedKey)
    try await DocCommentExamples.storeBatch(Inbox(head: "Jake", elements: ["Hi"]), queuedKey, in: store)
    #expect(try await store.load(.inbox(of: "0"))?.value.messages == ["Hi"])
    #expect(try await store.load(queuedKey) == nil)
    let lines = try await output { print in
      let timedStore = DocCommentExamples.TimedStore(base: store) { print($0) }
      let loaded = try await timedStore.load(.inbox(of: "0"))
      #expect(loaded?.value.messages == ["Hi"])
    }
    #expect(lines.count == 1)
  }

  /// Returns the documentation comments of a file as one text.
  private func comments(of path: String) throws -> MarkdownFile {
    let lines = try SourceTree.lines(of: path).compactMap { line in
      let text = line.drop { $0 == " " }
      return text.hasPrefix("///") ? String(text.dropFirst(text.hasPrefix("/// ") ? 4 : 3)) : nil
    }
    return MarkdownFile(path: path, lines: lines)
  }
}
