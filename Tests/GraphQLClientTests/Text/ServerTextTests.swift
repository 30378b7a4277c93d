import Foundation
import Testing

@testable import GraphQLClient

struct ServerTextTests {
  @Test func `A short body is quoted completely`() {
    #expect(ServerText.line(of: Data("没有".utf8)) == "没有")
    #expect(ServerText.line(of: Data()) == "")
    let longest = String(repeating: "a", count: 512)
    #expect(ServerText.line(of: Data(longest.utf8)) == longest)
  }

  @Test func `The excerpt of a long body ends in an ellipsis, which counts toward the limit`() {
    let excerpt = ServerText.line(of: Data(String(repeating: "长", count: 513).utf8))
    #expect(excerpt == String(repeating: "长", count: 511) + "…")
  }

  @Test func `A character that is split at the byte limit is not quoted`() {
    // `line(of:)` decodes only a prefix of the body, which here ends after three bytes of an emoji. The limit of 512
    // scalars truncates the line before them.
    let excerpt = ServerText.line(of: Data(("a" + String(repeating: "😀", count: 600)).utf8))
    #expect(excerpt == "a" + String(repeating: "😀", count: 510) + "…")
  }

  @Test func `A line of 512 four-byte scalars is quoted completely, and a longer one is truncated`() {
    let longest = String(repeating: "😀", count: 512)
    #expect(ServerText.line(of: Data(longest.utf8)) == longest)
    #expect(ServerText.line(of: Data((longest + "😀").utf8)) == String(repeating: "😀", count: 511) + "…")
  }

  @Test func `Control and formatting characters and line separators in a body become spaces`() {
    let body = "a\r\n\u{1B}[2Jb\u{202E}c\u{2028}d"
    #expect(ServerText.line(of: Data(body.utf8)) == "a   [2Jb c d")
    #expect(ServerText.line(body) == "a   [2Jb c d")
  }

  @Test(arguments: [
    "\0", "\t", "\u{07}", "\u{7F}", "\u{85}", "\u{9B}", "\u{AD}", "\u{200B}", "\u{200E}", "\u{2029}", "\u{2066}",
    "\u{2069}", "\u{FEFF}", "\u{E0041}",
  ])
  func `Each control character, formatting character and paragraph separator becomes a space`(character: String) {
    #expect(ServerText.line("a\(character)b") == "a b")
  }

  @Test func `Letters, marks and symbols are unchanged`() {
    let text = "Größe 没有 e\u{301} עברית 👍🏽 “a” \u{A0}"
    #expect(ServerText.line(text).unicodeScalars.elementsEqual(text.unicodeScalars))
  }

  @Test func `The limit counts scalars, because one character can have any number of them`() {
    let text = "a" + String(repeating: "\u{301}", count: 100_000)
    let line = ServerText.line(text)
    #expect(line.unicodeScalars.count == 512)
    #expect(line.unicodeScalars.last == "…")
    #expect(text.count == 1)
  }

  @Test func `Very long text is truncated`() {
    let text = String(repeating: "x", count: 4 << 20)
    #expect(ServerText.line(text) == String(repeating: "x", count: 511) + "…")
    #expect(ServerText.line(of: Data(text.utf8)) == String(repeating: "x", count: 511) + "…")
  }

  @Test func `Invalid UTF-8 becomes replacement characters`() {
    #expect(ServerText.line(of: Data([0x61, 0xFF, 0x62])) == "a\u{FFFD}b")
    #expect(ServerText.line(of: Data(repeating: 0xFF, count: 5000)) == String(repeating: "\u{FFFD}", count: 511) + "…")
  }

  @Test func `A slice of a body is quoted from the start of the slice`() {
    #expect(ServerText.line(of: Data("skipped text".utf8).dropFirst(8)) == "text")
  }
}
