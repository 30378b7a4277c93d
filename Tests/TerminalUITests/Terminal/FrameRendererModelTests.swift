import Testing

@testable import TerminalUI

/// A model test of the renderer: after any sequence of frames, the emulated terminal shows the last frame.
struct FrameRendererModelTests {
  private static let texts = [
    "a", "bc", "sunset ", " ", "山", "水月", "é", "😂", "👨‍👩‍👧‍👦", "🏖️", "🇦🇺x", "👍🏽", "      ", "the end of it",
  ]
  private static let styles = [
    TextStyle.plain, TextStyle(attributes: .bold), TextStyle(color: TerminalColor(basic: 1, indexed: 1, direct: 1)),
    TextStyle(attributes: .inverse),
  ]

  @Test(arguments: ScreenEmulator.EmojiDrawing.allCases)
  func `A terminal shows the last frame, no matter how wide it draws emoji`(emojiDrawing: ScreenEmulator.EmojiDrawing) {
    var random = SplitMix(state: 41)
    for _ in 0..<60 {
      let size = TerminalSize(columns: .random(in: 1...18, using: &random), rows: .random(in: 1...4, using: &random))
      var renderer = FrameRenderer(capabilities: TerminalCapabilities(colors: .basic, synchronizesOutput: true))
      var screen = ScreenEmulator(size: size, emojiDrawing: emojiDrawing)
      var frame = Frame(size: size)
      for step in 0..<30 {
        // Some frames start blank instead of as a copy of the last one.
        if step.isMultiple(of: 10) { frame = Frame(size: size) }
        for _ in 0..<Int.random(in: 0...4, using: &random) {
          frame.write(
            Self.texts.randomElement(using: &random)!, row: .random(in: 0..<size.rows, using: &random),
            column: .random(in: -1..<size.columns, using: &random),
            style: Self.styles.randomElement(using: &random)!)
        }
        screen.write(renderer.render(frame))
        #expect(screen.cells.count == size.rows)
        for row in 0..<size.rows {
          guard let difference = difference(of: screen.cells[row], to: Array(frame[row: row])) else { continue }
          Issue.record("Step \(step), row \(row): \(difference)")
          return
        }
      }
    }
  }

  /// Returns a description of the first difference between the shown row and the frame's row; `nil` if there is none.
  ///
  /// In the columns of a character of uncertain width, blanks and any part of the character are accepted.
  private func difference(of shown: [String], to cells: [Frame.Cell]) -> String? {
    var column = 0
    while column < cells.count {
      let cell = cells[column]
      let found = Array(shown[column..<column + max(1, cell.span)])
      if cell.character.hasUncertainWidth {
        // The columns may be blank or show a part of the character, but not what was there before.
        let accepted = ["", " ", String(cell.character)] + cell.character.unicodeScalars.map { String($0) }
        if !found.allSatisfy(accepted.contains) { return "\(found) instead of \(cell.character) in column \(column)" }
      } else {
        let expected = cell.span == 2 ? [String(cell.character), ""] : [String(cell.character)]
        if found != expected { return "\(found) instead of \(expected) in column \(column)" }
      }
      column += max(1, cell.span)
    }
    return nil
  }
}

/// A small random number generator with a seed, so that every run is the same.
private struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
