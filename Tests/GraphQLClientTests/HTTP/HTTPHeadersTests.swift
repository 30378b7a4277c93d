import Testing

@testable import GraphQLClient

struct HTTPHeadersTests {
  @Test func `Names are case-insensitive, and the later value and spelling win`() {
    let headers = HTTPHeaders(["x-a": "1", "X-B": "1"]).merging(["X-A": "2"])
    #expect(headers.fields == [.init(name: "X-A", value: "2"), .init(name: "X-B", value: "1")])
    #expect(headers["x-A"] == "2")
    #expect(headers["x-c"] == nil)
  }

  @Test func `If a dictionary has several spellings of a name, the last one in sorted order wins`() {
    // Equal dictionaries may iterate in different orders, so one attempt isn't enough.
    for _ in 0..<20 {
      let headers = HTTPHeaders(["x-a": "lower", "X-A": "upper", "X-a": "mixed"])
      #expect(headers.fields == [.init(name: "x-a", value: "lower")])
    }
  }

  @Test func `If a literal has two spellings of a name, the later one wins`() {
    let headers: HTTPHeaders = ["x-a": "lower", "X-B": "b", "X-A": "upper"]
    #expect(headers.fields == [.init(name: "X-A", value: "upper"), .init(name: "X-B", value: "b")])
    let empty: HTTPHeaders = [:]
    #expect(empty == HTTPHeaders())
    #expect(empty.fields == [])
  }

  @Test func `Setting a field replaces its value and its spelling`() {
    var headers: HTTPHeaders = ["x-a": "1"]
    headers["X-A"] = "2"
    headers["X-B"] = ""
    #expect(headers.fields == [.init(name: "X-A", value: "2"), .init(name: "X-B", value: "")])
  }

  @Test func `Setting a field to nil removes it, regardless of the case of its name`() {
    var headers: HTTPHeaders = ["X-A": "1", "X-B": "2"]
    headers["x-a"] = nil
    headers["x-c"] = nil
    #expect(headers.fields == [.init(name: "X-B", value: "2")])
    #expect(headers["X-A"] == nil)
  }

  @Test func `Adding a value to a field appends it after a comma, and keeps the spelling of the name`() {
    var headers = HTTPHeaders()
    headers.add("1", for: "X-A")
    #expect(headers.fields == [.init(name: "X-A", value: "1")])
    headers.add("2", for: "x-a")
    headers.add("3, 4", for: "X-a")
    headers.add("", for: "X-B")
    #expect(headers.fields == [.init(name: "X-A", value: "1, 2, 3, 4"), .init(name: "X-B", value: "")])
  }

  @Test func `Fields are sorted by name`() {
    let headers: HTTPHeaders = ["b": "1", "A": "2", "C": "3", "a-b": "4"]
    #expect(headers.fields.map(\.name) == ["A", "a-b", "b", "C"])
  }

  @Test func `Changing headers does not change their copies`() {
    var headers: HTTPHeaders = ["a": "1"]
    let copy = headers
    headers.add("2", for: "a")
    #expect(copy["a"] == "1")
    #expect(copy != headers)
  }

  @Test(arguments: ["a", "!#$%&'*+-.^_`|~09azAZ"])
  func `A token is a valid name`(name: String) {
    #expect(HTTPHeaders([name: "a\tb 值"]).nameOfFirstInvalidField == nil)
  }

  // U+212A is the Kelvin sign, which isn't ASCII although its lowercase form is.
  @Test(arguments: ["", " ", "a b", "a:", "é", "a(b)", "a/b", "\"a\"", "a\u{212A}"])
  func `Text that is not a token is an invalid name`(name: String) {
    #expect(HTTPHeaders([name: "a"]).nameOfFirstInvalidField == name)
  }

  @Test(arguments: ["\r", "\n", "\0", "\u{1B}", "\u{7F}"])
  func `A control character other than a tab is invalid in a name and in a value`(character: String) {
    #expect(HTTPHeaders(["a": "b\(character)"]).nameOfFirstInvalidField == "a")
    #expect(HTTPHeaders(["a\(character)": "b"]).nameOfFirstInvalidField == "a\(character)")
  }

  @Test func `If several fields are invalid, the first name in sorted order is reported`() {
    #expect(HTTPHeaders(["c d": "1", "a": "1", "B": "\n"]).nameOfFirstInvalidField == "B")
    #expect(HTTPHeaders().nameOfFirstInvalidField == nil)
  }
}
