import Testing

@testable import TerminalUI

struct DisplayWidthTests {
  @Test(
    arguments: [
      ("a", 1), ("é", 1), ("e\u{301}", 1), ("♥", 1), ("…", 1), ("─", 1), ("ｱ", 1), ("ア", 2), ("山", 2), ("，", 2),
      ("Ａ", 2),
      ("한", 2), ("\u{1112}\u{1161}\u{11AB}", 2), ("\u{20000}", 2), ("\u{3000}", 2), ("நி", 2), ("ก", 1),
      ("😂", 2), ("👍🏽", 2), ("👨‍👩‍👧‍👦", 2), ("🏖️", 2), ("❤️", 2), ("❤", 1), ("🇦🇺", 2), ("1️⃣", 2), ("🏴󠁧󠁢󠁳󠁣󠁴󠁿", 2), ("⌚", 2),
      // A presentation selector changes the width only if it selects the emoji form of an emoji.
      ("⌚\u{FE0E}", 2), ("a\u{FE0F}", 1),
      ("\u{200D}", 0), ("\u{301}", 0), ("\u{200B}", 0), ("\u{7}", 0), ("\n", 0), ("\r\n", 0), ("\u{7F}", 0),
      ("\u{9B}", 0),
      ("\u{AD}", 0), ("\u{2028}", 0),
    ] as [(Character, Int)])
  func `A grapheme cluster takes 0, 1 or 2 columns`(character: Character, width: Int) {
    #expect(character.displayWidth == width)
  }

  @Test func `The bounds of wide ranges match the Unicode Character Database`() {
    let isWide = { (value: UInt32) in EastAsianWidth.isWide(Unicode.Scalar(value)!) }
    #expect([0x10FF, 0x1100, 0x115F, 0x1160].map(isWide) == [false, true, true, false])
    #expect([0x303E, 0x303F, 0x3040, 0x3041].map(isWide) == [true, false, false, true])
    #expect([0xFF00, 0xFF01, 0xFF60, 0xFF61].map(isWide) == [false, true, true, false])
    #expect([0x1F5FA, 0x1F5FB, 0x1F64F, 0x1F650].map(isWide) == [false, true, true, false])
    #expect([0x3FFFD, 0x3FFFE, 0x10FFFF].map(isWide) == [true, false, false])
  }

  @Test func `A width is uncertain if several scalars take columns, or one is a presentation selector`() {
    let certain: [Character] = ["a", "山", "😂", "e\u{301}", "한"]
    #expect(certain.map(\.hasUncertainWidth) == [false, false, false, false, false])
    let uncertain: [Character] = ["👨‍👩‍👧‍👦", "🏖️", "🇦🇺", "👍🏽", "1️⃣", "நி"]
    #expect(uncertain.map(\.hasUncertainWidth) == [true, true, true, true, true, true])
  }
}
