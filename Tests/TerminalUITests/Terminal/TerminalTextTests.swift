import Testing

@testable import TerminalUI

struct TerminalTextTests {
  @Test func `The width of a text is the sum of the widths of its characters`() {
    #expect(TerminalText.width(of: "") == 0)
    #expect(TerminalText.width(of: "Pastéis") == 7)
    #expect(TerminalText.width(of: "今天的晚霞") == 10)
    #expect(TerminalText.width(of: "Family day 👨‍👩‍👧‍👦 at the beach 🏖️🇦🇺") == 31)
  }

  @Test(arguments: [
    ("plain", "plain"), ("a\tb\nc\r\nd", "a b c d"), ("\u{1B}[31mred\u{7}", "\u{FFFD}[31mred\u{FFFD}"),
    ("csi\u{9B}2J", "csi\u{FFFD}2J"), ("ab\u{202E}cd\u{2066}", "abcd"), ("\u{301}x", "x"),
    ("soft\u{AD}hyphen", "softhyphen"),
    ("👨‍👩‍👧‍👦", "👨‍👩‍👧‍👦"), ("🏴󠁧󠁢󠁳󠁣󠁴󠁿", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"), ("line\u{2028}paragraph\u{2029}", "line paragraph "),
  ])
  func `Printable text contains no command to the terminal, no direction change and no zero-width character`(
    text: String, expected: String
  ) {
    #expect(Array(TerminalText.printable(text).unicodeScalars) == Array(expected.unicodeScalars))
  }

  @Test(arguments: [
    ("sunset", 7, "sunset"), ("sunset", 6, "sunset"), ("sunset", 5, "suns…"), ("sunset", 1, "…"), ("sunset", 0, ""),
    ("今天的晚霞", 10, "今天的晚霞"), ("今天的晚霞", 9, "今天的晚…"), ("今天的晚霞", 8, "今天的…"), ("今天的晚霞", 2, "…"),
    ("今", 1, "…"), ("a👨‍👩‍👧‍👦b", 4, "a👨‍👩‍👧‍👦b"), ("a👨‍👩‍👧‍👦b", 3, "a…"), ("ab👨‍👩‍👧‍👦", 4, "ab👨‍👩‍👧‍👦"), ("", 3, ""),
  ])
  func `A truncated text is cut between characters, with an ellipsis`(text: String, columns: Int, expected: String) {
    #expect(TerminalText.truncated(text, to: columns) == expected)
  }

  @Test(arguments: [
    ("sunset", 6, "sunset"), ("sunset", 5, "…nset"), ("sunset", 1, "…"), ("sunset", 0, ""), ("今天的晚霞", 10, "今天的晚霞"),
    ("今天的晚霞", 9, "…天的晚霞"), ("今天的晚霞", 8, "…的晚霞"), ("a👨‍👩‍👧‍👦b", 3, "…b"), ("a👨‍👩‍👧‍👦b", 4, "a👨‍👩‍👧‍👦b"), ("", 3, ""),
  ])
  func `The tail of a text that is too wide begins with an ellipsis`(text: String, columns: Int, expected: String) {
    #expect(TerminalText.tail(of: text, columns: columns) == expected)
  }

  @Test func `A padded text takes exactly the given columns, even if a wide character doesn't fit into the last one`() {
    #expect(TerminalText.padded("ab", to: 4) == "ab  ")
    #expect(TerminalText.padded("ab", to: 4, alignment: .trailing) == "  ab")
    #expect(TerminalText.padded("晚霞", to: 5) == "晚霞 ")
    #expect(TerminalText.padded("今天的晚霞", to: 8) == "今天的… ")
    #expect(TerminalText.padded("abc", to: 0) == "")
  }

  @Test func `Lines break between words`() {
    #expect(TerminalText.wrapped("Nine hours of rain", to: 10) == ["Nine hours", "of rain"])
    #expect(TerminalText.wrapped("Nine  hours of rain ", to: 9) == ["Nine", "hours of", "rain"])
    #expect(TerminalText.wrapped("Nine hours", to: 80) == ["Nine hours"])
    #expect(TerminalText.wrapped("  ", to: 80) == [])
    // A width of one column gives no lines, because a wide character would have no room in it.
    #expect(TerminalText.wrapped("a", to: 1) == [])
  }

  @Test func `Lines break within a word only if it is wider than a line`() {
    #expect(TerminalText.wrapped("an extraordinary day", to: 6) == ["an", "extrao", "rdinar", "y day"])
  }

  @Test func `Lines break before and after wide characters, except before closing punctuation`() {
    #expect(TerminalText.wrapped("周末去爬山", to: 4) == ["周末", "去爬", "山"])
    #expect(TerminalText.wrapped("周末去，爬山。", to: 6) == ["周末", "去，爬", "山。"])
    #expect(TerminalText.wrapped("see 山 now", to: 6) == ["see 山", "now"])
    #expect(TerminalText.wrapped("day 👨‍👩‍👧‍👦👨‍👩‍👧‍👦", to: 7) == ["day 👨‍👩‍👧‍👦", "👨‍👩‍👧‍👦"])
  }
}
