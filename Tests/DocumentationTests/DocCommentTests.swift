import DataStore
import Testing

/// Checks that the Swift blocks of documentation comments appear in `DocCommentExamples.swift`, which is compiled.
@Suite struct DocCommentTests {
  static let sources = [
    "Multicast", "DataStore", "Repository", "GraphQLClient", "Moments", "SignIn", "Todo", "MulticastTesting",
    "DataStoreTesting", "RepositoryTesting", "MomentsTesting",
  ].flatMap {
    Repository.files(in: "Sources/\($0)", named: ".swift")
  }

  @Test(arguments: sources)
  func `Every Swift block of a comment is compiled`(path: String) throws {
    let examples = "Tests/DocumentationTests/DocCommentExamples.swift"
    let compiled = try Repository.lines(of: examples)
    for block in try comments(of: path).blocks(of: "swift") {
      #expect(compiled.contains(block: block), "Not in \(examples):\n\(block.joined(separator: "\n"))")
    }
  }

  @Test func `Blocks are found in comments`() throws {
    #expect(try comments(of: "Sources/Multicast/MulticastStream.swift").blocks(of: "swift").count == 1)
  }

  @Test func `The examples have the results that their comments state`() async throws {
    #expect(DocCommentExamples.currentValueChannel() == .loaded)
    #expect(try DocCommentExamples.storeKeyName() == "inbox.%4aake%2f0")
    #expect(StoreKey.inbox(of: "0").id == "0")
    let store = InMemoryStore()
    let queued = StoreKey<Int>("queued")
    try await store.save(1, for: queued)
    try await DocCommentExamples.storeBatch(Inbox(head: "Jake", elements: ["Hi"]), queued, in: store)
    #expect(try await store.load(.inbox(of: "0"))?.value.messages == ["Hi"])
    #expect(try await store.load(queued) == nil)
  }

  /// Returns the documentation comments of a file as one text.
  private func comments(of path: String) throws -> MarkdownFile {
    let lines = try Repository.lines(of: path).compactMap { line in
      line.firstMatch(of: /^ *\/\/\/ ?(.*)$/).map { String($0.1) }
    }
    return MarkdownFile(path: path, lines: lines)
  }
}
