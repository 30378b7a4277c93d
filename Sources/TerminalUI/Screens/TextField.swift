/// A line of text that is typed at its end.
package enum TextField {
  /// The text after a key; nil for a key that types nothing.
  package static func text(_ text: String, after key: Key) -> String? {
    switch key {
    case .character(let character): text + String(character)
    case .pasted(let pasted): text + pasted
    case .backspace: String(text.dropLast())
    case .control("u"): ""
    default: nil
    }
  }

  /// Draws the text, as much of its end as fits, and the cursor behind it where the field is typed in.
  package static func draw(_ text: String, isFocused: Bool, in frame: inout Frame, row: Int, columns: Range<Int>) {
    let end = frame.write(
      TerminalText.tail(of: text, columns: columns.count - 1), row: row, column: columns.lowerBound)
    if isFocused {
      frame.write(" ", row: row, column: end, style: TextStyle(attributes: .inverse))
    }
  }
}
