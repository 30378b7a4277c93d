/// The size of a terminal, in cells.
package struct TerminalSize: Hashable, Sendable {
  package var columns: Int
  package var rows: Int

  package init(columns: Int, rows: Int) {
    (self.columns, self.rows) = (columns, rows)
  }
}

extension TerminalSize: CustomStringConvertible {
  package var description: String { "\(columns)×\(rows)" }
}
