/// How many cells a terminal shows.
struct TerminalSize: Hashable, Sendable {
  var columns: Int
  var rows: Int
}

extension TerminalSize: CustomStringConvertible {
  var description: String { "\(columns)×\(rows)" }
}
