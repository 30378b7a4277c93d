/// Where a body has its list and the detail of the selected row: side by side; one below the other on a narrow terminal;
/// on a small one there is the list alone.
package struct ListAndDetail {
  /// A part of a frame.
  package struct Area: Equatable {
    package var rows: Range<Int>
    package var columns: Range<Int>
  }

  /// The narrowest terminal with list and detail side by side.
  private static let sideBySideColumns = 70
  /// The lowest narrow terminal with the detail below the list.
  private static let stackedRows = 18
  private static let stackedDetailRows = 6

  package let list: Area
  /// Nil where there is no room for it.
  package let detail: Area?

  /// Whether the detail has room for empty lines.
  package var isDetailRoomy: Bool { detail.map { $0.rows.count > Self.stackedDetailRows } ?? false }

  /// Divides a body, and draws the line between the two.
  package init(dividing body: Range<Int>, of frame: inout Frame) {
    let size = frame.size
    if size.columns >= Self.sideBySideColumns {
      let divider = size.columns * 57 / 100
      frame.write("┬", row: body.lowerBound - 1, column: divider, style: .faint)
      frame.write("┴", row: body.upperBound, column: divider, style: .faint)
      for row in body { frame.write("│", row: row, column: divider, style: .faint) }
      list = Area(rows: body, columns: 0..<divider)
      detail = Area(rows: body, columns: divider + 2..<size.columns - 1)
    } else if size.rows >= Self.stackedRows {
      let divider = body.upperBound - Self.stackedDetailRows - 1
      frame.fill("─", row: divider, columns: 0..<size.columns, style: .faint)
      list = Area(rows: body.lowerBound..<divider, columns: 0..<size.columns)
      detail = Area(rows: divider + 1..<body.upperBound, columns: 1..<size.columns - 1)
    } else {
      list = Area(rows: body, columns: 0..<size.columns)
      detail = nil
    }
  }

  /// Which rows a list of `height` shows: the selected one in the middle, but no empty lines while there are rows.
  package static func visibleRows(count: Int, selection: Int, height: Int) -> Range<Int> {
    let first = max(0, min(selection - height / 2, count - height))
    return first..<max(first, min(count, first + height))
  }

  /// Draws the rows that are visible, each by `drawRow` with its index and its place, the selected one as such, and
  /// where in the list they are.
  package func drawRows(
    count: Int, selection: Int, in frame: inout Frame, drawRow: (Int, _ row: Int, inout Frame) -> Void
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

  /// Says in the place of rows why there are no rows.
  package func drawPlaceholder(_ text: String, in frame: inout Frame) {
    for (line, row) in zip(TerminalText.wrapped(text, to: list.columns.count - 4), list.rows.dropFirst()) {
      frame.write(line, row: row, column: list.columns.lowerBound + 2)
    }
  }
}
