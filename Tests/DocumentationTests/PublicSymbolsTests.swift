import Testing

@Suite struct PublicSymbolsTests {
  let symbols = PublicSymbols(
    source: """
      public final class Channel<Element: Sendable>: Sendable {
        /// public func commented()
        public init(replay: Int = 0, buffering: Policy<Never>) {}
        public static func error(_ capacity: Int, _ make: @escaping (Int, Int) -> Int) -> Self {}
        public func update<Result, E: Error>(_ body: (inout Int) throws(E) -> Result) throws(E) -> Result {}
        public mutating func next(
          isolation actor: isolated (any Actor)? = #isolation
        ) async -> Element? {}
        public func finish() {}
        public var latest: Element? { nil }
        private var hidden = 0
        func internalOne() {}
      }
      public enum Result {
        case sent
        case failed(any Error, after: Duration? = nil)
      }
      public protocol Store {
        func load(_ key: Key) async throws
        var events: Events { get }
      }
      public typealias FileStore = BackedStore<FileBackend>
      struct Hidden {}
      extension AsyncSequence where Self: Sendable {
        public func shared<Failure: Error>(replay: Int = 0) -> Channel<Element> {}
      }
      """)

  // A link may name a case without its associated values, but not a function without its parentheses.
  @Test(arguments: [
    "Channel", "Channel/init(replay:buffering:)", "Channel/error(_:_:)", "Channel/update(_:)",
    "Channel/next(isolation:)", "_Concurrency/AsyncSequence/shared(replay:)", "Channel/finish()", "Channel/latest",
    "Result/sent", "Result/failed", "Result/failed(_:after:)", "Store/load(_:)", "Store/events", "FileStore",
  ])
  func `Public symbols are found`(link: String) {
    #expect(symbols.contains(link: link))
  }

  @Test(arguments: [
    "Hidden", "Channel/hidden", "Channel/internalOne()", "Channel/finish(throwing:)", "Channel/finish", "latest",
    "Channel/commented()", "Channel/error(_:)",
  ])
  func `Symbols that are not public, and links that are misspelled, are not found`(link: String) {
    #expect(!symbols.contains(link: link))
  }

  @Test func `A relay cannot be finished`() throws {
    let multicast = try PublicSymbols(module: "Multicast")
    for method in ["finish()", "finish(throwing:)"] { #expect(multicast.contains(link: "MulticastChannel/\(method)")) }
    for relay in ["MulticastRelay", "CurrentValueRelay"] {
      #expect(multicast.contains(link: relay))
      for method in ["finish()", "finish(throwing:)"] { #expect(!multicast.contains(link: "\(relay)/\(method)")) }
    }
  }
}
