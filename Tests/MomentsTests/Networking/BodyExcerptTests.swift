import Foundation
import Testing

@testable import Moments

struct BodyExcerptTests {
  @Test func `A short body is quoted whole`() {
    #expect(BodyExcerpt.text(of: Data("没有".utf8)) == "没有")
    #expect(BodyExcerpt.text(of: Data()) == "")
    let longest = String(repeating: "a", count: 512)
    #expect(BodyExcerpt.text(of: Data(longest.utf8)) == longest)
  }

  @Test func `A long body ends in an ellipsis within the limit`() {
    let excerpt = BodyExcerpt.text(of: Data(String(repeating: "长", count: 513).utf8))
    #expect(excerpt == String(repeating: "长", count: 511) + "…")
  }

  @Test func `A character cut at the limit does no harm`() {
    let excerpt = BodyExcerpt.text(of: Data(("a" + String(repeating: "😀", count: 600)).utf8))
    #expect(excerpt == "a" + String(repeating: "😀", count: 510) + "…")
  }

  @Test func `What a terminal would obey becomes spaces`() {
    let body = "a\r\n\u{1B}[2Jb\u{202E}c\u{2028}d"
    #expect(BodyExcerpt.text(of: Data(body.utf8)) == "a   [2Jb c d")
  }

  @Test func `Bytes that are no text are marked`() {
    #expect(BodyExcerpt.text(of: Data([0x61, 0xFF, 0x62])) == "a\u{FFFD}b")
  }
}
