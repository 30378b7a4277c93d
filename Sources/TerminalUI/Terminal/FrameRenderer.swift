/// Renders the output that updates a terminal from one frame to the next with few bytes.
///
/// - **Minimal updates**: A cell is written only if it differs, or if writing it takes fewer bytes than moving the
///   cursor past it. The output for an equal frame is empty.
/// - **Uncertain widths**: Terminals disagree about the width of some characters, such as emoji. If a changed cell has
///   or had such a character, the rest of the row is written again. After such a character, the cursor is positioned
///   explicitly before the next cell is written. Therefore no column shifts, no matter how wide a terminal draws the
///   character.
///
/// The terminal must not wrap lines at its right edge.
struct FrameRenderer: Sendable {
  let capabilities: TerminalCapabilities
  private var lastFrame: Frame?

  init(capabilities: TerminalCapabilities) {
    self.capabilities = capabilities
  }

  /// Causes the next frame to be rendered in full, for example after another program wrote to the terminal.
  mutating func forget() {
    lastFrame = nil
  }

  /// Returns the output that updates a terminal from the last rendered frame to this one.
  mutating func render(_ frame: Frame) -> String {
    var pen = Pen(depth: capabilities.colors)
    let old: Frame
    if let lastFrame, lastFrame.size == frame.size {
      old = lastFrame
    } else {
      old = Frame(size: frame.size)
      pen.clearScreen()
    }
    for row in 0..<frame.size.rows { draw(row, of: frame, over: old, with: &pen) }
    pen.apply(.plain)
    lastFrame = frame
    if pen.text.isEmpty || !capabilities.synchronizesOutput { return pen.text }
    return "\u{1B}[?2026h" + pen.text + "\u{1B}[?2026l"
  }

  private func draw(_ row: Int, of frame: Frame, over old: Frame, with pen: inout Pen) {
    let new = Array(frame[row: row])
    let needsWriting = needsWriting(new, over: Array(old[row: row]))
    guard needsWriting.contains(true) else { return }
    // The blank end of the row is cleared with a single sequence if its 3 bytes are fewer than the spaces to write.
    let tailColumn = new.lastIndex { reduced($0) != .blank }.map { $0 + 1 } ?? 0
    let clearsTail = needsWriting[tailColumn...].count(where: \.self) > 3
    var column = 0
    while column < (clearsTail ? tailColumn : new.count) {
      let cell = new[column]
      if cell.span > 0, needsWriting[column] {
        moveOrRewrite(to: column, in: row, cells: new, with: &pen)
        pen.write(cell, row: row, column: column, columns: new.count)
      }
      column += max(1, cell.span)
    }
    if clearsTail {
      pen.move(row: row, column: tailColumn)
      pen.clearToEndOfRow()
    }
  }

  /// Returns for each cell whether it must be written.
  ///
  /// The halves of a wide character are always written together.
  private func needsWriting(_ new: [Frame.Cell], over old: [Frame.Cell]) -> [Bool] {
    var needsWriting = zip(new, old).map { reduced($0) != reduced($1) }
    for column in new.indices where new[column].span == 0 {
      needsWriting[column - 1] = needsWriting[column - 1] || needsWriting[column]
      needsWriting[column] = needsWriting[column - 1]
    }
    // The terminal may draw the new character, or may have drawn the old one, in more columns than the frame assumes.
    let firstUncertainColumn = new.indices.first { column in
      needsWriting[column] && (new[column].character.hasUncertainWidth || old[column].character.hasUncertainWidth)
    }
    if let firstUncertainColumn { for column in firstUncertainColumn..<new.count { needsWriting[column] = true } }
    return needsWriting
  }

  /// Moves the cursor to a column.
  ///
  /// Up to three characters in between are written again instead, if they are ASCII and in the current style, because
  /// that takes fewer bytes.
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

/// The output so far, and the position and style of the cursor after it.
private struct Pen {
  let depth: ColorDepth
  private(set) var text = ""
  private var style = TextStyle.plain
  /// The position of the cursor; `nil` if it isn't known.
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
    var candidates = [
      column == 0 ? (row == 0 ? "\u{1B}[H" : "\u{1B}[\(row + 1)H") : "\u{1B}[\(row + 1);\(column + 1)H"
    ]
    if let position {
      if position == (row, column) { return }
      if position.row == row, column == 0 { candidates.append("\r") }
      if position.row == row, column > position.column {
        let distance = column - position.column
        candidates.append(distance == 1 ? "\u{1B}[C" : "\u{1B}[\(distance)C")
      }
      if position.row + 1 == row, column == 0 { candidates.append("\r\n") }
    }
    text += candidates.min { $0.utf8.count < $1.utf8.count }!
  }

  mutating func write(_ cell: Frame.Cell, row: Int, column: Int, columns: Int) {
    apply(cell.style)
    let isUncertain = cell.character.hasUncertainWidth
    if isUncertain {
      // Without these spaces, the old text would stay visible if the terminal draws the character in fewer columns.
      text += String(repeating: " ", count: cell.span)
      position = nil
      move(row: row, column: column)
    }
    text.append(cell.character)
    // Terminals differ in where the cursor is after a character at the right edge.
    position = isUncertain || column + cell.span >= columns ? nil : (row, column + cell.span)
  }
}
