/// Functions that edit a single line of text at its end, and draw it.
package enum TextField {
  /// Returns the text that results from a key; `nil` for a key that doesn't edit text.
  package static func text(_ text: String, after key: Key) -> String? {
    switch key {
    case .character(let character): text + String(character)
    case .pasted(let pasted): text + pasted
    case .backspace: String(text.dropLast())
    case .control("u"): ""
    default: nil
    }
  }

  /// Draws as much of the end of the text as fits, followed by a cursor if the field is focused.
  package static func draw(_ text: String, isFocused: Bool, in frame: inout Frame, row: Int, columns: Range<Int>) {
    let cursorColumn = frame.write(
      TerminalText.tail(of: text, columns: columns.count - 1), row: row, column: columns.lowerBound)
    if isFocused {
      frame.write(" ", row: row, column: cursorColumn, style: TextStyle(attributes: .inverse))
    }
  }
}
