import Foundation
import Testing

@testable import GraphQLClient

struct ServerTextTests {
  @Test func `A short body is quoted whole`() {
    #expect(ServerText.line(of: Data("没有".utf8)) == "没有")
    #expect(ServerText.line(of: Data()) == "")
    let longest = String(repeating: "a", count: 512)
    #expect(ServerText.line(of: Data(longest.utf8)) == longest)
  }

  @Test func `A long body ends in an ellipsis within the limit`() {
    let excerpt = ServerText.line(of: Data(String(repeating: "长", count: 513).utf8))
    #expect(excerpt == String(repeating: "长", count: 511) + "…")
  }

  @Test func `A character cut at the limit does no harm`() {
    let excerpt = ServerText.line(of: Data(("a" + String(repeating: "😀", count: 600)).utf8))
    #expect(excerpt == "a" + String(repeating: "😀", count: 510) + "…")
  }

  @Test func `What a terminal would obey becomes spaces`() {
    let body = "a\r\n\u{1B}[2Jb\u{202E}c\u{2028}d"
    #expect(ServerText.line(of: Data(body.utf8)) == "a   [2Jb c d")
  }

  @Test func `Bytes that are no text are marked`() {
    #expect(ServerText.line(of: Data([0x61, 0xFF, 0x62])) == "a\u{FFFD}b")
  }
}
