import Testing

@testable import GraphQLClient

struct HTTPHeadersTests {
  @Test func `Names ignore case, and the later value and spelling win`() {
    let headers = HTTPHeaders(["x-a": "1", "X-B": "1"]).merging(["X-A": "2"])
    #expect(headers.fields == [.init(name: "X-A", value: "2"), .init(name: "X-B", value: "1")])
    #expect(headers["x-A"] == "2")
    #expect(headers["x-c"] == nil)
  }

  @Test func `Two spellings in one dictionary always give the same header`() {
    for _ in 0..<20 {
      let headers = HTTPHeaders(["x-a": "lower", "X-A": "upper", "X-a": "mixed"])
      #expect(headers.fields == [.init(name: "x-a", value: "lower")])
    }
  }

  @Test(arguments: ["a", "!#$%&'*+-.^_`|~09azAZ"])
  func `A token is a name`(name: String) {
    #expect(HTTPHeaders([name: "a\tb 值"]).firstInvalidName == nil)
  }

  @Test(arguments: ["\r", "\n", "\0", "\u{1B}", "\u{7F}"])
  func `A control character is refused, in a name and in a value`(character: String) {
    #expect(HTTPHeaders(["a": "b\(character)"]).firstInvalidName == "a")
    #expect(HTTPHeaders(["a\(character)": "b"]).firstInvalidName == "a\(character)")
  }
}
