/// A key and its action, as shown at the bottom of a screen.
package struct KeyHint: Hashable, Sendable {
  package var key: String
  package var action: String

  package init(key: String, action: String) {
    (self.key, self.action) = (key, action)
  }
}

/// The parts that all screens have around their body.
///
/// From top to bottom, a screen shows the title and the states, a rule, the body, a rule, the latest activity, and the
/// keys.
package struct ScreenChrome {
  /// The minimum size of a screen.
  ///
  /// In a smaller terminal, the frame shows its own size, the minimum size and the first of ``keys`` instead of the
  /// screen, as far as they fit.
  package static let minimumSize = TerminalSize(columns: 40, rows: 10)

  package var title: String
  /// The counts after the title; left out if they don't fit.
  package var counts: String?
  /// The states at the end of the title's row, such as “offline”, from left to right.
  package var states: [(text: String, style: TextStyle)]
  /// The description of the latest activity.
  package var activity: String
  package var activityStyle: TextStyle
  /// The hints for the keys, most important first.
  ///
  /// The first hint is for the key that leaves the screen, or that closes what is open on it. The first hint that
  /// doesn't fit and all hints after it are left out.
  package var keys: [KeyHint]

  package init(
    title: String, counts: String? = nil, states: [(text: String, style: TextStyle)] = [], activity: String,
    activityStyle: TextStyle = .plain, keys: [KeyHint]
  ) {
    (self.title, self.counts, self.states) = (title, counts, states)
    (self.activity, self.activityStyle, self.keys) = (activity, activityStyle, keys)
  }

  /// Returns a frame with these parts and a body.
  ///
  /// - Parameters:
  ///   - size: The size of the frame.
  ///   - drawBody: Draws the body in a range of rows.
  package func frame(size: TerminalSize, drawBody: (inout Frame, Range<Int>) -> Void) -> Frame {
    var frame = Frame(size: size)
    guard size.columns >= Self.minimumSize.columns, size.rows >= Self.minimumSize.rows else {
      frame.write("Too small: \(size)", row: 0, column: 0)
      frame.write("Needs \(Self.minimumSize)", row: 1, column: 0)
      if let hint = keys.first { frame.write("\(hint.key) \(hint.action)", row: 2, column: 0, style: .faint) }
      return frame
    }
    let body = Self.body(of: size)
    drawHeader(in: &frame)
    frame.fill("─", row: 1, columns: 0..<size.columns, style: .faint)
    frame.fill("─", row: body.upperBound, columns: 0..<size.columns, style: .faint)
    drawBody(&frame, body)
    frame.write(activity, row: size.rows - 2, column: 1, columns: size.columns - 2, style: activityStyle)
    drawKeys(in: &frame, row: size.rows - 1)
    return frame
  }

  /// Returns the rows of the body on a screen of a size.
  static func body(of size: TerminalSize) -> Range<Int> { 2..<max(2, size.rows - 3) }

  private func drawHeader(in frame: inout Frame) {
    let columns = frame.size.columns
    let separator = " · "
    // The states matter more than the title, so they are laid out first, in at most two thirds of the columns. The
    // title gets the remaining columns. Two columns stay blank before the counts and the states, and one at each edge.
    let textsWidth = states.reduce(0) { $0 + TerminalText.width(of: $1.text) }
    let separatorsWidth = max(0, states.count - 1) * TerminalText.width(of: separator)
    let statesWidth = min(textsWidth + separatorsWidth, columns * 2 / 3)
    let statesColumn = columns - 1 - statesWidth
    var column = frame.write(title, row: 0, column: 1, columns: statesColumn - 3, style: .strong)
    if let counts, column + 2 + TerminalText.width(of: counts) + 2 <= statesColumn {
      frame.write(counts, row: 0, column: column + 2)
    }
    column = statesColumn
    for (index, state) in states.enumerated() {
      if index > 0 { column = frame.write(separator, row: 0, column: column, columns: columns - 1 - column) }
      column = frame.write(state.text, row: 0, column: column, columns: columns - 1 - column, style: state.style)
    }
  }

  private func drawKeys(in frame: inout Frame, row: Int) {
    var column = 1
    for hint in keys {
      let width = TerminalText.width(of: "\(hint.key) \(hint.action)")
      guard column + width < frame.size.columns else { return }
      column = frame.write(hint.key, row: row, column: column, style: .accent) + 1
      column = frame.write(hint.action, row: row, column: column, style: .faint) + 2
    }
  }
}
