import Testing

@testable import TerminalUI

struct TextFieldTests {
  private func textAfterTyping(_ keys: [Key], into text: String = "") -> String {
    keys.reduce(text) { TextField.text($0, after: $1) ?? $0 }
  }

  @Test func `Characters are inserted and deleted at the end`() {
    #expect(textAfterTyping("写周报".map(Key.character)) == "写周报")
    #expect(textAfterTyping([.pasted("写周"), .pasted("报")]) == "写周报")
    #expect(textAfterTyping([.character("!"), .backspace, .backspace], into: "写周报") == "写周")
    #expect(textAfterTyping([.backspace]) == "")
    // Ctrl-U deletes the whole text.
    #expect(textAfterTyping([.control("u"), .character("a")], into: "写周报") == "a")
  }

  @Test func `A scalar that joins the preceding character is deleted with it`() {
    let family = "👨‍👩‍👧‍👦"
    // A terminal sends the character scalar by scalar.
    #expect(textAfterTyping(family.unicodeScalars.map { .character(Character($0)) }) == family)
    #expect(textAfterTyping([.backspace], into: "a" + family) == "a")
  }

  @Test func `Other keys do not edit the text`() {
    for key in [Key.enter, .tab, .backTab, .escape, .up, .left, .home, .control("a")] {
      #expect(TextField.text("a", after: key) == nil)
    }
  }

  @Test(arguments: [
    ("ab", 8, "ab", 2), ("abcdefg", 8, "abcdefg", 7), ("abcdefgh", 8, "…cdefgh", 7), ("今天的晚霞", 8, "…的晚霞", 7),
    ("", 8, "", 0),
  ])
  func `The text's end is always visible, and so is the cursor of a focused field`(
    text: String, columns: Int, visibleText: String, cursorOffset: Int
  ) {
    var frame = Frame(size: TerminalSize(columns: 10, rows: 1))
    TextField.draw(text, isFocused: true, in: &frame, row: 0, columns: 1..<1 + columns)
    #expect(frame.lines == [visibleText.isEmpty ? "" : " " + visibleText])
    #expect(frame[row: 0].map { $0.style.attributes == .inverse }.firstIndex(of: true) == 1 + cursorOffset)
    TextField.draw(text, isFocused: false, in: &frame, row: 0, columns: 1..<1 + columns)
    #expect(frame.lines == [visibleText.isEmpty ? "" : " " + visibleText])
  }
}
