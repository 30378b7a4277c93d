@testable import TerminalUI

/// Emulates the screen of a terminal, as far as a ``FrameRenderer`` uses it.
///
/// The emulated terminal doesn't wrap lines.
struct ScreenEmulator {
  /// The way in which a terminal draws a character of uncertain width.
  enum EmojiDrawing: CaseIterable {
    /// As one character, with the width that this program assumes.
    case joined
    /// As all its parts, side by side.
    case split
    /// In a single column.
    case narrow
  }

  let emojiDrawing: EmojiDrawing
  /// The characters of each row, with an empty text for the second column of a wide character.
  private(set) var cells: [[String]]
  private var row = 0
  private var column = 0

  init(size: TerminalSize, emojiDrawing: EmojiDrawing) {
    self.emojiDrawing = emojiDrawing
    // A real screen is not blank at the start.
    cells = Array(repeating: Array(repeating: "?", count: size.columns), count: size.rows)
  }

  mutating func write(_ output: String) {
    var rest = output[...]
    while let character = rest.popFirst() {
      switch character {
      case "\u{1B}": performControlSequence(&rest)
      case "\r": column = 0
      case "\r\n": (row, column) = (row + 1, 0)
      default: put(character)
      }
    }
  }

  /// Performs a control sequence whose escape character was already read, and removes its other characters from `rest`.
  private mutating func performControlSequence(_ rest: inout Substring) {
    // Every sequence of the renderer continues with `[`.
    rest.removeFirst()
    let parameters = rest.prefix { !$0.isLetter }
    rest.removeFirst(parameters.count)
    let numbers = parameters.split(separator: ";").compactMap { Int($0) }
    switch rest.removeFirst() {
    case "H":
      // Rows and columns are numbered from 1.
      (row, column) = (numbers.first ?? 1, numbers.count > 1 ? numbers[1] : 1)
      row -= 1
      column -= 1
    case "C": column += numbers.first ?? 1
    case "K": for index in column..<cells[row].count { clear(index) }
    case "J": cells = cells.map { $0.map { _ in " " } }
    // Styles and modes don't change the characters.
    default: break
    }
  }

  private mutating func put(_ character: Character) {
    guard character.hasUncertainWidth else { return put(String(character), width: character.displayWidth) }
    switch emojiDrawing {
    case .joined: put(String(character), width: character.displayWidth)
    case .narrow: put(String(character), width: 1)
    case .split:
      for scalar in character.unicodeScalars where scalar.displayWidth > 0 {
        put(String(scalar), width: scalar.displayWidth)
      }
    }
  }

  private mutating func put(_ text: String, width: Int) {
    guard column + width <= cells[row].count else { return }
    for index in column..<column + width { clear(index) }
    cells[row][column] = text
    if width == 2 { cells[row][column + 1] = "" }
    column += width
  }

  private mutating func clear(_ index: Int) {
    if cells[row][index].isEmpty { cells[row][index - 1] = " " }
    if index + 1 < cells[row].count, cells[row][index + 1].isEmpty { cells[row][index + 1] = " " }
    cells[row][index] = " "
  }
}
