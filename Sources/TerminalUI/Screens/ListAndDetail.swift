/// The layout of a list and the detail of its selected row.
///
/// The two are side by side, or stacked on a narrow terminal. A terminal that is both narrow and low shows the list
/// alone.
package struct ListAndDetail {
  /// A rectangle of cells in a frame.
  package struct Area: Equatable {
    package var rows: Range<Int>
    package var columns: Range<Int>
  }

  /// The minimum number of columns of a terminal that shows list and detail side by side.
  private static let minimumSideBySideColumns = 70
  /// The minimum number of rows of a terminal that shows the detail below the list.
  private static let minimumStackedRows = 18
  /// The number of rows of the detail below the list.
  private static let stackedDetailRows = 6

  private enum Arrangement {
    case sideBySide, stacked, listAlone

    init(_ size: TerminalSize) {
      if size.columns >= minimumSideBySideColumns {
        self = .sideBySide
      } else {
        self = size.rows >= minimumStackedRows ? .stacked : .listAlone
      }
    }
  }

  package let list: Area
  /// The area of the detail; `nil` if the terminal is too small for it.
  package let detail: Area?

  /// Whether the detail has room for blank lines.
  package var isDetailRoomy: Bool { detail.map { $0.rows.count > Self.stackedDetailRows } ?? false }

  /// Divides a body, which is a range of rows, into the two areas, and draws the divider between them.
  package init(dividing body: Range<Int>, of frame: inout Frame) {
    let size = frame.size
    switch Arrangement(size) {
    case .sideBySide:
      // The list, whose rows are single lines, gets somewhat more than half of the columns.
      let dividerColumn = size.columns * 57 / 100
      frame.write("┬", row: body.lowerBound - 1, column: dividerColumn, style: .faint)
      frame.write("┴", row: body.upperBound, column: dividerColumn, style: .faint)
      for row in body { frame.write("│", row: row, column: dividerColumn, style: .faint) }
      list = Area(rows: body, columns: 0..<dividerColumn)
      detail = Area(rows: body, columns: dividerColumn + 2..<size.columns - 1)
    case .stacked:
      let dividerRow = body.upperBound - Self.stackedDetailRows - 1
      frame.fill("─", row: dividerRow, columns: 0..<size.columns, style: .faint)
      list = Area(rows: body.lowerBound..<dividerRow, columns: 0..<size.columns)
      detail = Area(rows: dividerRow + 1..<body.upperBound, columns: 1..<size.columns - 1)
    case .listAlone:
      list = Area(rows: body, columns: 0..<size.columns)
      detail = nil
    }
  }

  /// Returns the number of rows that a page key moves by on a screen of this size.
  ///
  /// It is one less than the number of rows that the list has room for, so that one row stays visible, but at least 1.
  package static func pageHeight(of size: TerminalSize) -> Int {
    let bodyHeight = ScreenChrome.body(of: size).count
    return max(1, (Arrangement(size) == .stacked ? bodyHeight - stackedDetailRows - 1 : bodyHeight) - 1)
  }

  /// Returns the indices of the rows that a list of `height` lines shows.
  ///
  /// The selected row is in the middle, except near the ends of the list, where centering it would leave lines blank.
  package static func visibleRows(count: Int, selection: Int, height: Int) -> Range<Int> {
    let first = max(0, min(selection - height / 2, count - height))
    return first..<max(first, min(count, first + height))
  }

  /// Draws the visible rows with the selected one highlighted, and below them the position of the selected row.
  ///
  /// - Parameters:
  ///   - count: The number of rows in the list.
  ///   - selection: The index of the selected row.
  ///   - frame: The frame to draw in.
  ///   - drawRow: Draws a row of the list, given by its index, in a row of the frame.
  package func drawRows(
    count: Int, selection: Int, in frame: inout Frame, drawRow: (_ index: Int, _ row: Int, inout Frame) -> Void
  ) {
    let visible = Self.visibleRows(count: count, selection: selection, height: list.rows.count)
    for (index, row) in zip(visible, list.rows) {
      if index == selection { frame.write("▸", row: row, column: list.columns.lowerBound, style: .accent) }
      drawRow(index, row, &frame)
      if index == selection {
        frame.restyle(row: row, columns: list.columns.dropFirst()) { $0.attributes.formUnion(.inverse) }
      }
    }
    let position = " \(selection + 1)/\(count) "
    frame.write(
      position, row: list.rows.upperBound, column: list.columns.upperBound - 1 - TerminalText.width(of: position),
      style: .faint)
  }

  /// Draws the reason why the list has no rows, in place of the rows.
  package func drawPlaceholder(_ text: String, in frame: inout Frame) {
    for (line, row) in zip(TerminalText.wrapped(text, to: list.columns.count - 4), list.rows.dropFirst()) {
      frame.write(line, row: row, column: list.columns.lowerBound + 2)
    }
  }
}
