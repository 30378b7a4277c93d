/// Brings a terminal from one frame to the next, with few bytes.
///
/// - **Least change**: Only cells that differ are written. An equal frame is an empty text.
/// - **Uncertain widths**: After a character whose width terminals disagree about, the cursor is placed anew and the
///   rest of the row written again, so that one terminal's idea of an emoji never shifts a column.
///
/// The terminal must not wrap at its right edge.
struct FrameRenderer: Sendable {
  let capabilities: TerminalCapabilities
  private var shown: Frame?

  init(capabilities: TerminalCapabilities) {
    self.capabilities = capabilities
  }

  /// Lets the next frame be drawn as a whole, as after something else wrote to the terminal.
  mutating func forget() {
    shown = nil
  }

  /// The text that makes a terminal, which shows the last frame, show this one.
  mutating func render(_ frame: Frame) -> String {
    var pen = Pen(depth: capabilities.colors)
    let old: Frame
    if let shown, shown.size == frame.size {
      old = shown
    } else {
      old = Frame(size: frame.size)
      pen.clearScreen()
    }
    for row in 0..<frame.size.rows { draw(row, of: frame, over: old, with: &pen) }
    pen.apply(.plain)
    shown = frame
    if pen.text.isEmpty || !capabilities.synchronizesOutput { return pen.text }
    return "\u{1B}[?2026h" + pen.text + "\u{1B}[?2026l"
  }

  private func draw(_ row: Int, of frame: Frame, over old: Frame, with pen: inout Pen) {
    let new = Array(frame[row: row])
    let isChanged = changes(to: new, from: Array(old[row: row]))
    guard isChanged.contains(true) else { return }
    // Where the rest of the row is blank: cleared at once when that is shorter than to write spaces.
    let tail = new.lastIndex { reduced($0) != .blank }.map { $0 + 1 } ?? 0
    let isTailCleared = isChanged[tail...].count(where: \.self) > 3
    var column = 0
    while column < (isTailCleared ? tail : new.count) {
      let cell = new[column]
      if cell.span > 0, isChanged[column] {
        moveOrRewrite(to: column, in: row, cells: new, with: &pen)
        pen.write(cell, row: row, column: column, columns: new.count)
      }
      column += max(1, cell.span)
    }
    if isTailCleared {
      pen.move(row: row, column: tail)
      pen.clearToEndOfRow()
    }
  }

  /// Which cells must be written.
  ///
  /// The halves of a wide character are always written together.
  private func changes(to new: [Frame.Cell], from old: [Frame.Cell]) -> [Bool] {
    var isChanged = zip(new, old).map { reduced($0) != reduced($1) }
    for column in new.indices where new[column].span == 0 {
      isChanged[column - 1] = isChanged[column - 1] || isChanged[column]
      isChanged[column] = isChanged[column - 1]
    }
    // A terminal may have drawn, or may draw, more columns than the character has.
    let uncertain = new.indices.first { column in
      isChanged[column] && (new[column].character.hasUncertainWidth || old[column].character.hasUncertainWidth)
    }
    if let uncertain { for column in uncertain..<new.count { isChanged[column] = true } }
    return isChanged
  }

  /// Goes to a column: over a short gap of plain characters by writing them again, as that takes fewer bytes.
  private func moveOrRewrite(to column: Int, in row: Int, cells: [Frame.Cell], with pen: inout Pen) {
    if let position = pen.position, position.row == row, position.column < column, column - position.column <= 3 {
      let gap = cells[position.column..<column]
      if gap.allSatisfy({ $0.character.isASCII && $0.span == 1 && pen.has($0.style) }) {
        for column in position.column..<column {
          pen.write(cells[column], row: row, column: column, columns: cells.count)
        }
        return
      }
    }
    pen.move(row: row, column: column)
  }

  private func reduced(_ cell: Frame.Cell) -> Frame.Cell {
    var cell = cell
    cell.style = cell.style.reduced(to: capabilities.colors)
    return cell
  }
}

/// The cursor of a terminal, and what was written with it.
private struct Pen {
  let depth: ColorDepth
  private(set) var text = ""
  private var style = TextStyle.plain
  /// Nil where only the terminal knows.
  private(set) var position: (row: Int, column: Int)?

  init(depth: ColorDepth) {
    self.depth = depth
  }

  func has(_ style: TextStyle) -> Bool {
    self.style.reduced(to: depth) == style.reduced(to: depth)
  }

  mutating func apply(_ style: TextStyle) {
    text += style.sequence(from: self.style, depth: depth)
    self.style = style
  }

  mutating func clearScreen() {
    text += "\u{1B}[m\u{1B}[2J\u{1B}[H"
    style = .plain
    position = (0, 0)
  }

  mutating func clearToEndOfRow() {
    apply(.plain)
    text += "\u{1B}[K"
  }

  mutating func move(row: Int, column: Int) {
    defer { position = (row, column) }
    var ways = [
      column == 0 ? (row == 0 ? "\u{1B}[H" : "\u{1B}[\(row + 1)H") : "\u{1B}[\(row + 1);\(column + 1)H"
    ]
    if let position {
      if position == (row, column) { return }
      if position.row == row, column == 0 { ways.append("\r") }
      if position.row == row, column > position.column {
        let distance = column - position.column
        ways.append(distance == 1 ? "\u{1B}[C" : "\u{1B}[\(distance)C")
      }
      if position.row + 1 == row, column == 0 { ways.append("\r\n") }
    }
    text += ways.min { $0.utf8.count < $1.utf8.count }!
  }

  mutating func write(_ cell: Frame.Cell, row: Int, column: Int, columns: Int) {
    apply(cell.style)
    let isUncertain = cell.character.hasUncertainWidth
    if isUncertain {
      // A terminal that draws fewer columns would leave the old text in the remaining ones.
      text += String(repeating: " ", count: cell.span)
      position = nil
      move(row: row, column: column)
    }
    text.append(cell.character)
    // At the right edge terminals differ in where the cursor stays.
    position = isUncertain || column + cell.span >= columns ? nil : (row, column + cell.span)
  }
}
