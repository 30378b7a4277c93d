/// The contents of a terminal: a grid of cells.
///
/// A wide character takes two cells and is never cut in half. If only one cell is left for it, that cell is a space.
package struct Frame: Hashable, Sendable {
  package struct Cell: Hashable, Sendable {
    package static let blank = Cell(character: " ", style: .plain, span: 1)

    package var character: Character
    package var style: TextStyle
    /// The number of columns that the character takes: 1 or 2, and 0 for the second cell of a wide character.
    package var span: Int
  }

  package let size: TerminalSize
  private var cells: [Cell]

  /// Creates a blank frame.
  package init(size: TerminalSize) {
    self.size = TerminalSize(columns: max(0, size.columns), rows: max(0, size.rows))
    cells = Array(repeating: .blank, count: self.size.columns * self.size.rows)
  }

  /// A cell of the frame.
  package subscript(row: Int, column: Int) -> Cell { cells[row * size.columns + column] }

  /// The cells of a row.
  package subscript(row row: Int) -> ArraySlice<Cell> {
    cells[row * size.columns..<(row + 1) * size.columns]
  }

  /// Writes a text in a row.
  ///
  /// A text that is wider than `columns` is truncated with an ellipsis. The text is clipped at the edges of the frame.
  ///
  /// - Returns: The column after the text.
  @discardableResult
  package mutating func write(
    _ text: String, row: Int, column: Int, columns: Int? = nil, style: TextStyle = .plain
  ) -> Int {
    let text = columns.map { TerminalText.truncated(text, to: $0) } ?? TerminalText.printable(text)
    var column = column
    for character in text {
      let span = character.displayWidth
      put(character, span: span, row: row, column: column, style: style)
      column += span
    }
    return column
  }

  /// Fills a range of columns with a character that takes one column.
  package mutating func fill(
    _ character: Character = " ", row: Int, columns: Range<Int>, style: TextStyle = .plain
  ) {
    for column in columns { put(character, span: 1, row: row, column: column, style: style) }
  }

  /// Changes the style of a range of columns, and keeps the characters.
  package mutating func restyle(row: Int, columns: Range<Int>, _ change: (inout TextStyle) -> Void) {
    guard (0..<size.rows).contains(row) else { return }
    for column in columns.clamped(to: 0..<size.columns) { change(&cells[row * size.columns + column].style) }
  }

  private mutating func put(_ character: Character, span: Int, row: Int, column: Int, style: TextStyle) {
    guard (0..<size.rows).contains(row) else { return }
    let visible = (column..<column + span).clamped(to: 0..<size.columns)
    for column in visible { clear(row: row, column: column) }
    guard visible.count == span else {
      // The edge of the frame cuts the character off. If a cell is left for it, that cell stays a space.
      for column in visible { cells[row * size.columns + column].style = style }
      return
    }
    let index = row * size.columns + column
    cells[index] = Cell(character: character, style: style, span: span)
    if span == 2 { cells[index + 1] = Cell(character: " ", style: style, span: 0) }
  }

  /// Makes a cell blank.
  ///
  /// If the cell is half of a wide character, the other half becomes a space and keeps its style.
  private mutating func clear(row: Int, column: Int) {
    let index = row * size.columns + column
    switch cells[index].span {
    case 0: (cells[index - 1].character, cells[index - 1].span) = (" ", 1)
    case 2: cells[index + 1].span = 1
    default: break
    }
    cells[index] = .blank
  }

  /// The text of each row, without trailing spaces.
  package var lines: [String] {
    (0..<size.rows).map { row in
      var line = String(self[row: row].filter { $0.span > 0 }.map(\.character))
      while line.last == " " { line.removeLast() }
      return line
    }
  }
}
