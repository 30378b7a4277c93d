import Testing

/// Checks every article of every documentation catalog.
///
/// The Swift blocks of `Some.docc/Topic.md` must appear in `Articles/TopicExamples.swift`, where they are compiled. If
/// another catalog has an article of the same name, the file may be `Articles/SomeTopicExamples.swift`.
@Suite struct ArticleTests {
  static let articles = SourceTree.files(in: "Sources", withSuffix: ".md").filter { $0.contains(".docc/") }

  /// The public symbols of each module that has articles.
  private static let symbols = Result {
    try Dictionary(uniqueKeysWithValues: Set(articles.map(module)).map { ($0, try PublicSymbols(module: $0)) })
  }

  @Test func `There are articles`() {
    #expect(Self.articles.contains("Sources/Multicast/Multicast.docc/Multicast.md"))
  }

  @Test(arguments: articles)
  func `Every Swift block of an article is compiled`(path: String) throws {
    let article = try MarkdownFile(path)
    let blocks = article.blocks(of: "swift")
    if blocks.isEmpty { return }
    let candidates = ["\(Self.module(of: path))\(article.name)", article.name].map {
      "Tests/DocumentationTests/Articles/\($0)Examples.swift"
    }
    let examples = try #require(
      candidates.first(where: SourceTree.exists), "\(path) needs its Swift blocks in one of \(candidates).")
    let compiled = try SourceTree.lines(of: examples)
    for block in blocks {
      #expect(compiled.contains(example: block), "Not in \(examples):\n\(block.joined(separator: "\n"))")
    }
  }

  @Test(arguments: articles)
  func `Every block of code names a known language`(path: String) throws {
    let known: Set = ["swift", "sh", "text", "rxswift", "combine", "kotlin", "typescript"]
    for block in try MarkdownFile(path).codeBlocks {
      #expect(known.contains(block.language), "Unknown language '\(block.language)' in \(path).")
    }
  }

  @Test(arguments: articles)
  func `Every symbol link refers to a public symbol`(path: String) throws {
    let symbols = try #require(try Self.symbols.get()[Self.module(of: path)])
    for line in try MarkdownFile(path).prose {
      for link in line.matches(of: /``([^`]+)``/).map({ String($0.1) }) where link != Self.module(of: path) {
        #expect(symbols.contains(link: link), "\(path) links to ``\(link)``, which is not public.")
      }
    }
  }

  @Test(arguments: articles)
  func `Every article link refers to an existing article`(path: String) throws {
    let catalog = path.split(separator: "/").dropLast().joined(separator: "/")
    for line in try MarkdownFile(path).prose {
      for link in line.matches(of: /<doc:([^>#]+)[^>]*>/) {
        #expect(SourceTree.exists("\(catalog)/\(link.1).md"), "\(path) links to \(link.1), which doesn't exist.")
      }
    }
  }

  @Test(arguments: articles)
  func `A landing page lists every public type and every article`(path: String) throws {
    let page = try MarkdownFile(path)
    guard page.name == Self.module(of: path) else { return }
    let topics = page.prose.drop { $0 != "## Topics" }
    for type in try #require(try Self.symbols.get()[page.name]).outerTypes {
      #expect(topics.contains("- ``\(type)``"), "\(path) does not list \(type).")
    }
    let catalog = path.split(separator: "/").dropLast().joined(separator: "/")
    for article in Self.articles where article.hasPrefix(catalog) && article != path {
      let name = try MarkdownFile(article).name
      #expect(topics.contains("- <doc:\(name)>"), "\(path) does not list \(name).")
    }
  }

  @Test func `The guarantees are numbered from C1 to C26 without a gap`() throws {
    let guarantees = try MarkdownFile("Sources/Multicast/Multicast.docc/Guarantees.md")
    let numbers = guarantees.prose.compactMap { $0.firstMatch(of: /^- \*\*C(\d+)\b/).map { String($0.1) } }
    #expect(numbers == (1...26).map { "\($0)" })
  }

  private static func module(of path: String) -> String {
    String(path.split(separator: "/")[1])
  }
}
