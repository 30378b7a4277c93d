import Testing

@testable import TerminalUI

struct FrameRendererTests {
  private static let red = TextStyle(color: TerminalColor(basic: 1, indexed: 203, direct: 0xFF5F5F))

  /// Returns a frame of these lines that is `columns` wide.
  private func frame(_ columns: Int, _ lines: [String], style: TextStyle = .plain) -> Frame {
    var frame = Frame(size: TerminalSize(columns: columns, rows: lines.count))
    for (row, line) in lines.enumerated() { frame.write(line, row: row, column: 0, style: style) }
    return frame
  }

  /// Returns the output for the last of several frames, with `E` for the escape character.
  private func outputForLast(_ frames: Frame..., colors: ColorDepth = .none, synchronizes: Bool = false) -> String {
    var renderer = FrameRenderer(
      capabilities: TerminalCapabilities(colors: colors, synchronizesOutput: synchronizes))
    return frames.map { renderer.render($0) }.last!.replacing("\u{1B}", with: "E")
  }

  @Test func `The first frame clears the screen and writes the cells that are not blank`() {
    #expect(outputForLast(frame(10, ["", "ab", "", "  c"])) == "E[mE[2JE[H\r\nabE[4;3Hc")
  }

  @Test func `A frame equal to the last one produces no output`() {
    #expect(outputForLast(frame(10, ["ab", "山"]), frame(10, ["ab", "山"]), synchronizes: true) == "")
  }

  @Test func `Only cells that differ are written`() {
    #expect(outputForLast(frame(20, ["one", "two"]), frame(20, ["one", "tWo"])) == "E[2;2HW")
    #expect(outputForLast(frame(20, ["abcdefghij"]), frame(20, ["Abcdefghij"])) == "E[HA")
  }

  @Test func `A short gap between changed cells is written again, and a longer gap is skipped by moving the cursor`() {
    #expect(outputForLast(frame(20, ["abcdefghij"]), frame(20, ["AbcDefghij"])) == "E[HAbcD")
    #expect(outputForLast(frame(20, ["abcdefghij"]), frame(20, ["AbcdefghiJ"])) == "E[HAE[8CJ")
  }

  @Test func `The cursor moves to the next line with a line break if that takes the fewest bytes`() {
    #expect(outputForLast(frame(9, ["a", "b"]), frame(9, ["A", "B"])) == "E[HA\r\nB")
  }

  @Test func `Cells that become blank at a row's end are cleared if many, and overwritten with spaces if few`() {
    #expect(outputForLast(frame(20, ["sunset"]), frame(20, ["su"])) == "E[1;3HE[K")
    #expect(outputForLast(frame(20, ["sunset"]), frame(20, ["suns"])) == "E[1;5H  ")
  }

  @Test func `A wide character takes two columns and is written as a whole`() {
    #expect(outputForLast(frame(20, ["山水x"]), frame(20, ["山月x"])) == "E[1;3H月")
    #expect(outputForLast(frame(20, ["山水x"]), frame(20, ["山abx"])) == "E[1;3Hab")
    #expect(outputForLast(frame(20, ["abx"]), frame(20, ["山x"])) == "E[H山")
    // After a wide character, the cursor is known to be two columns further.
    #expect(outputForLast(frame(20, ["山bc"]), frame(20, ["水bC"])) == "E[H水bC")
  }

  @Test func `Where a character of uncertain width appears or disappears, the rest of its row is written`() {
    // Before a new character of uncertain width, spaces are written, because the terminal may draw it in fewer columns.
    // After it, the cursor is positioned explicitly.
    #expect(outputForLast(frame(20, ["a👨‍👩‍👧‍👦b"])) == "E[mE[2JE[Ha  E[1;2H👨‍👩‍👧‍👦E[1;4HbE[K")
    #expect(outputForLast(frame(8, ["a👨‍👩‍👧‍👦b"]), frame(8, ["A👨‍👩‍👧‍👦b"])) == "E[HA")
    #expect(outputForLast(frame(8, ["a👨‍👩‍👧‍👦b"]), frame(8, ["axxb"])) == "E[1;2HxxbE[K")
    #expect(outputForLast(frame(8, ["axxb"]), frame(8, ["a🇦🇺b"])) == "E[1;2H  E[1;2H🇦🇺E[1;4HbE[K")
  }

  @Test func `Style sequences are written only where the style changes`() {
    let bold = TextStyle(attributes: .bold)
    var styled = frame(20, ["ab"], style: bold)
    styled.write("c", row: 0, column: 2, style: TextStyle(color: Self.red.color, attributes: .bold))
    styled.write("d", row: 0, column: 3, style: Self.red)
    styled.write("e", row: 0, column: 4)
    #expect(outputForLast(styled, colors: .basic) == "E[mE[2JE[HE[1mabE[31mcE[0;31mdE[me")
  }

  @Test(arguments: [
    (ColorDepth.none, "E[mE[2JE[Ha"), (.basic, "E[mE[2JE[HE[31maE[m"), (.indexed, "E[mE[2JE[HE[38;5;203maE[m"),
    (.direct, "E[mE[2JE[HE[38;2;255;95;95maE[m"),
  ])
  func `Colors are limited to those that the terminal has`(colors: ColorDepth, expected: String) {
    #expect(outputForLast(frame(9, ["a"], style: Self.red), colors: colors) == expected)
  }

  @Test func `Without colors, a change of color produces no output`() {
    #expect(outputForLast(frame(9, ["a"]), frame(9, ["a"], style: Self.red)) == "")
  }

  @Test func `The bright basic colors have parameters of their own`() {
    #expect(TerminalColor(basic: 7, indexed: 0, direct: 0).parameters(depth: .basic) == "37")
    #expect(TerminalColor(basic: 8, indexed: 0, direct: 0).parameters(depth: .basic) == "90")
  }

  @Test func `A new size draws everything again, and so does forgetting the last frame`() {
    #expect(outputForLast(frame(9, ["ab"]), frame(8, ["ab"])) == "E[mE[2JE[Hab")
    var renderer = FrameRenderer(capabilities: TerminalCapabilities(colors: .none, synchronizesOutput: false))
    let firstOutput = renderer.render(frame(9, ["ab"]))
    renderer.forget()
    #expect(renderer.render(frame(9, ["ab"])) == firstOutput)
  }

  @Test func `The start and the end of a frame are marked if the terminal supports that`() {
    #expect(outputForLast(frame(9, ["a"]), frame(9, ["b"]), synchronizes: true) == "E[?2026hE[HbE[?2026l")
  }

  @Test func `After a character at the right edge, the cursor is positioned explicitly`() {
    #expect(outputForLast(frame(2, ["ab", "cd"]), frame(2, ["aB", "Cd"])) == "E[1;2HBE[2HC")
  }
}
