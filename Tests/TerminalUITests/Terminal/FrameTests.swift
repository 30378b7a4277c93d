import Testing

@testable import TerminalUI

/// The cells of a frame after texts were written to it.
@Suite struct FrameTests {
  private func blankFrame(columns: Int, rows: Int = 1) -> Frame {
    Frame(size: TerminalSize(columns: columns, rows: rows))
  }

  @Test func `Text is written from the given column on, and clipped at the edges of the frame`() {
    var frame = blankFrame(columns: 6, rows: 2)
    // `write` returns the column after the text, including its clipped part.
    #expect(frame.write("ab", row: 0, column: 1) == 3)
    #expect(frame.write("cdefgh", row: 1, column: 3) == 9)
    frame.write("nowhere", row: 2, column: 0)
    frame.write("xyz", row: 0, column: -2)
    #expect(frame.lines == ["zab", "   cde"])
  }

  @Test func `A wide character takes two cells`() {
    var frame = blankFrame(columns: 4)
    #expect(frame.write("山a", row: 0, column: 0) == 3)
    // The second cell of a wide character is a space with the span 0.
    #expect(frame[row: 0].map(\.span) == [2, 0, 1, 1])
    #expect(frame.lines == ["山a"])
  }

  @Test func `A wide character is never cut in half at an edge`() {
    var frame = blankFrame(columns: 3)
    frame.write("a山山", row: 0, column: 0)
    #expect(frame.lines == ["a山"])
    frame.write("b山", row: 0, column: 1)
    #expect(frame.lines == ["ab"])
    #expect(frame[row: 0].map(\.span) == [1, 1, 1])
    frame.write("山c", row: 0, column: -1)
    #expect(frame.lines == [" c"])
  }

  @Test func `Overwriting half of a wide character leaves the other half blank`() {
    var frame = blankFrame(columns: 4)
    frame.write("山水", row: 0, column: 0)
    frame.write("x", row: 0, column: 1)
    #expect(frame.lines == [" x水"])
    frame.write("月", row: 0, column: 1)
    #expect(frame.lines == [" 月"])
    #expect(frame[row: 0].map(\.span) == [1, 2, 0, 1])
    frame.write("y", row: 0, column: 1)
    #expect(frame.lines == [" y"])
    #expect(frame[row: 0].map(\.span) == [1, 1, 1, 1])
  }

  @Test func `A text wider than its columns ends with an ellipsis`() {
    var frame = blankFrame(columns: 8)
    #expect(frame.write("sunset", row: 0, column: 1, columns: 4) == 5)
    #expect(frame.lines == [" sun…"])
  }

  @Test func `Control characters never reach a cell`() {
    var frame = blankFrame(columns: 8)
    frame.write("\u{1B}[2J\n", row: 0, column: 0)
    // The line break becomes a space, and `lines` leaves out trailing spaces.
    #expect(frame.lines == ["\u{FFFD}[2J"])
  }

  @Test func `A negative size is treated as zero`() {
    #expect(blankFrame(columns: -1, rows: -1).lines == [])
  }
}
