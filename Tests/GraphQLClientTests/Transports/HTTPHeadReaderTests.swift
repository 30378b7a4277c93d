import Foundation
import Testing

@testable import GraphQLClient

struct HTTPHeadReaderTests {
  /// Returns the action for the last line, and records an issue if an earlier line isn't accepted.
  private static func lastAction(for lines: [Data]) -> HTTPHeadReader.Action? {
    var reader = HTTPHeadReader()
    for line in lines.dropLast() {
      let action = reader.receive(line: line)
      guard action == .proceed else {
        Issue.record("\(action) for a line of \(line.count) bytes")
        return nil
      }
    }
    return lines.last.map { reader.receive(line: $0) }
  }

  /// Returns the action for the last line of a head that consists of a status line, these lines and an empty line.
  private static func parseHead(_ lines: String...) -> HTTPHeadReader.Action? {
    lastAction(for: (["HTTP/1.1 200 OK\r\n"] + lines + ["\r\n"]).map { Data($0.utf8) })
  }

  // MARK: - Fields

  @Test func `The fields of a head are read from its lines`() {
    #expect(
      Self.parseHead("Content-Type: application/json\r\n", "x-a: 1\r\n")
        == .head(["Content-Type": "application/json", "x-a": "1"]))
    #expect(Self.parseHead() == .head([:]))
  }

  @Test(arguments: ["a: b\r\n", "a: b\n", "a: b", "a:b\r\n", "a: \t b \t \r\n", "a: b\r\r\n"])
  func `Line breaks and white space around a value are removed`(line: String) {
    #expect(Self.parseHead(line) == .head(["a": "b"]))
  }

  @Test func `White space and colons within a value are kept`() {
    #expect(Self.parseHead("a: b   c: d\r\n") == .head(["a": "b   c: d"]))
    #expect(Self.parseHead("Location: https://a.example:80/\r\n") == .head(["Location": "https://a.example:80/"]))
  }

  @Test(arguments: ["a:\r\n", "a: \t \r\n", "a:"])
  func `A value may be empty`(line: String) {
    #expect(Self.parseHead(line) == .head(["a": ""]))
  }

  @Test func `Repeated fields are joined in order, under the first spelling of their name`() {
    #expect(
      Self.parseHead("X-A: 1\r\n", "b: 2\r\n", "x-a: 3\r\n", "X-a: 4, 5\r\n") == .head(["X-A": "1, 3, 4, 5", "b": "2"]))
    #expect(Self.parseHead("a: 1\r\n", "a:\r\n") == .head(["a": "1, "]))
  }

  @Test func `A line may be a slice of other data`() {
    let text = Data("skip a: b\r\n\r\n".utf8)
    #expect(Self.lastAction(for: [text[5..<11], text[11...]]) == .head(["a": "b"]))
  }

  // MARK: - Heads

  @Test(arguments: ["\r\n", "\n", "", "\r"])
  func `An empty line ends a head`(emptyLine: String) {
    #expect(Self.lastAction(for: [Data("a: b\r\n".utf8), Data(emptyLine.utf8)]) == .head(["a": "b"]))
  }

  @Test func `Each of several heads has its own fields`() {
    var reader = HTTPHeadReader()
    func receive(_ text: String) -> HTTPHeadReader.Action { reader.receive(line: Data(text.utf8)) }
    #expect(receive("HTTP/1.1 103 Early Hints\r\n") == .proceed)
    #expect(receive("Link: </a>\r\n") == .proceed)
    #expect(receive("\r\n") == .head(["Link": "</a>"]))
    #expect(receive("HTTP/1.1 200 OK\r\n") == .proceed)
    #expect(receive("a: 1\r\n") == .proceed)
    #expect(receive("\r\n") == .head(["a": "1"]))
    #expect(receive("\r\n") == .head([:]))
  }

  // MARK: - Text

  @Test func `A value is decoded as UTF-8, or as Latin-1 if it is invalid UTF-8`() {
    #expect(Self.parseHead("a: 没有\r\n") == .head(["a": "没有"]))
    #expect(
      Self.lastAction(for: [Data("a: Gr".utf8) + [0xF6, 0xDF, 0x65, 0xFF], Data("\r\n".utf8)])
        == .head(["a": "Größeÿ"]))
  }

  @Test(arguments: ["\0", "\r", "\t", "\u{1B}", "\u{1F}", "\u{7F}"])
  func `A control character within a value becomes a space`(character: String) {
    #expect(Self.parseHead("a: b\(character)c\r\n") == .head(["a": "b c"]))
    #expect(
      Self.lastAction(for: [Data("a: b\(character)".utf8) + [0xE9], Data("\r\n".utf8)]) == .head(["a": "b é"]))
  }

  @Test(arguments: [
    "HTTP/1.1 200 a: b\r\n", "no colon\r\n", ": a\r\n", " : a\r\n", " a: b\r\n", "\ta: b\r\n", "a : b\r\n",
    "a b: c\r\n", "é: a\r\n", "a/b: c\r\n", "a\0: b\r\n", ":\r\n", " \r\n", " continued\r\n",
  ])
  func `A line that is not a field is ignored`(line: String) {
    #expect(Self.parseHead("b: 1\r\n", line, "c: 2\r\n") == .head(["b": "1", "c": "2"]))
  }

  @Test func `A field whose name is invalid UTF-8 is ignored`() {
    #expect(Self.lastAction(for: [Data([0xFF, 0x3A, 0x61]), Data("a: b\r\n".utf8), Data()]) == .head(["a": "b"]))
  }

  // MARK: - Limits

  /// Returns a field line of the given size in bytes, including its line break.
  private static func fieldLine(size: Int) -> Data {
    // The name, the separator and the line break have 5 bytes.
    Data("a: ".utf8) + Data(repeating: UInt8(ascii: "b"), count: size - 5) + Data("\r\n".utf8)
  }

  @Test func `The size limit is 64 KiB`() {
    #expect(HTTPHeadReader.maximumSize == 65_536)
  }

  @Test func `A head may have 64 KiB, including line breaks`() {
    // The other 7 bytes are 5 of the field line and the 2 of the empty line.
    let value = String(repeating: "b", count: 65_536 - 7)
    #expect(Self.lastAction(for: [Self.fieldLine(size: 65_534), Data("\r\n".utf8)]) == .head(["a": value]))
  }

  @Test func `A head with one byte more than 64 KiB is too large`() {
    #expect(Self.lastAction(for: [Self.fieldLine(size: 65_535), Data("\r\n".utf8)]) == .tooLarge)
    #expect(Self.lastAction(for: [Self.fieldLine(size: 65_536)]) == .proceed)
    #expect(Self.lastAction(for: [Self.fieldLine(size: 65_537)]) == .tooLarge)
  }

  @Test func `The size limit applies to all heads of a response together, and counts ignored lines`() {
    var reader = HTTPHeadReader()
    let value = String(repeating: "b", count: 32_768 - 7)
    for _ in 0..<2 {
      #expect(reader.receive(line: Self.fieldLine(size: 32_766)) == .proceed)
      #expect(reader.receive(line: Data("\r\n".utf8)) == .head(["a": value]))
    }
    #expect(reader.receive(line: Data()) == .head([:]))
    #expect(reader.receive(line: Data("x".utf8)) == .tooLarge)
    var readerOfIgnoredLine = HTTPHeadReader()
    #expect(readerOfIgnoredLine.receive(line: Data(repeating: UInt8(ascii: "x"), count: 65_536)) == .proceed)
    #expect(readerOfIgnoredLine.receive(line: Data("\r\n".utf8)) == .tooLarge)
  }

  @Test func `After a head that is too large, every further line is reported as too large`() {
    var reader = HTTPHeadReader()
    #expect(reader.receive(line: Self.fieldLine(size: 65_537)) == .tooLarge)
    #expect(reader.receive(line: Data("a: b\r\n".utf8)) == .tooLarge)
    #expect(reader.receive(line: Data("\r\n".utf8)) == .tooLarge)
  }
}
