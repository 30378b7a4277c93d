/// The live timeline as a picture: what to show, and a size, make a frame.
///
/// From top to bottom: whose timeline it is and how fresh, the list beside the selected moment (below it on a narrow
/// terminal), what happened last, and the keys.
enum TimelineScreen {
  /// Smaller than this it only says so.
  static let minimumSize = TerminalSize(columns: 40, rows: 10)

  /// The narrowest terminal with list and detail side by side.
  private static let sideBySideColumns = 70
  /// The lowest narrow terminal with the detail below the list.
  private static let stackedRows = 18
  private static let stackedDetailRows = 6

  static func frame(of model: Model, size: TerminalSize) -> Frame {
    var frame = Frame(size: size)
    guard size.columns >= minimumSize.columns, size.rows >= minimumSize.rows else {
      frame.write("Too small: \(size)", row: 0, column: 0)
      frame.write("Needs \(minimumSize)", row: 1, column: 0)
      frame.write("q quits", row: 2, column: 0, style: .faint)
      return frame
    }
    let body = 2..<size.rows - 3
    drawHeader(of: model, in: &frame)
    frame.fill("─", row: 1, columns: 0..<size.columns, style: .faint)
    frame.fill("─", row: body.upperBound, columns: 0..<size.columns, style: .faint)
    if size.columns >= sideBySideColumns {
      let divider = size.columns * 57 / 100
      frame.write("┬", row: 1, column: divider, style: .faint)
      frame.write("┴", row: body.upperBound, column: divider, style: .faint)
      for row in body { frame.write("│", row: row, column: divider, style: .faint) }
      drawList(of: model, in: &frame, rows: body, columns: 0..<divider)
      drawPosition(of: model, in: &frame, row: body.upperBound, before: divider)
      drawDetail(of: model, in: &frame, rows: body, columns: divider + 2..<size.columns - 1)
    } else if size.rows >= stackedRows {
      let divider = body.upperBound - stackedDetailRows - 1
      frame.fill("─", row: divider, columns: 0..<size.columns, style: .faint)
      drawList(of: model, in: &frame, rows: body.lowerBound..<divider, columns: 0..<size.columns)
      drawPosition(of: model, in: &frame, row: divider, before: size.columns)
      drawDetail(of: model, in: &frame, rows: divider + 1..<body.upperBound, columns: 1..<size.columns - 1)
    } else {
      drawList(of: model, in: &frame, rows: body, columns: 0..<size.columns)
      drawPosition(of: model, in: &frame, row: body.upperBound, before: size.columns)
    }
    frame.write(model.activity, row: size.rows - 2, column: 1, columns: size.columns - 2)
    drawKeys(of: model, in: &frame, row: size.rows - 1)
    return frame
  }

  // MARK: Header and keys

  private static func drawHeader(of model: Model, in frame: inout Frame) {
    let columns = frame.size.columns
    let states = states(of: model)
    let separator = " · "
    // The state is the news: the name gives way to it.
    let stateWidth = min(
      states.reduce(0) { $0 + TerminalText.width(of: $1.text) } + max(0, states.count - 1) * 3, columns * 2 / 3)
    let stateColumn = columns - 1 - stateWidth
    var column = frame.write(
      model.userName ?? "Moments", row: 0, column: 1, columns: stateColumn - 3, style: .strong)
    if !model.rows.isEmpty {
      let moments = model.rows.count == 1 ? "1 moment" : "\(model.rows.count) moments"
      let counts = "  \(moments) · \(TimelineText.likes(model.likeCount))"
      if column + TerminalText.width(of: counts) + 2 <= stateColumn {
        frame.write(counts, row: 0, column: column)
      }
    }
    column = stateColumn
    for (index, state) in states.enumerated() {
      if index > 0 { column = frame.write(separator, row: 0, column: column, columns: columns - 1 - column) }
      column = frame.write(state.text, row: 0, column: column, columns: columns - 1 - column, style: state.style)
    }
  }

  private static func states(of model: Model) -> [(text: String, style: TextStyle)] {
    var states: [(text: String, style: TextStyle)] = []
    switch model.source {
    case .stored(let age): states.append(("stored \(age)", .waiting))
    case .fetched(let age): states.append(("fetched \(age)", .good))
    case nil: break
    }
    if model.pendingCount > 0 { states.append(("\(model.pendingCount) waiting", .waiting)) }
    if model.isLoading { states.append(("loading…", .accent)) }
    if !model.isOnline {
      states.append(("offline", .bad))
    } else if model.problem != nil {
      states.append(("failed", .bad))
    }
    return states
  }

  private static func drawKeys(of model: Model, in frame: inout Frame, row: Int) {
    var column = 1
    for hint in model.keys {
      let width = TerminalText.width(of: "\(hint.key) \(hint.action)")
      guard column + width < frame.size.columns else { return }
      column = frame.write(hint.key, row: row, column: column, style: .accent) + 1
      column = frame.write(hint.action, row: row, column: column, style: .faint) + 2
    }
  }

  // MARK: List

  /// Which rows a list of `height` shows: the selected one in the middle, but no empty lines while there are rows.
  static func visibleRows(count: Int, selection: Int, height: Int) -> Range<Int> {
    let first = max(0, min(selection - height / 2, count - height))
    return first..<max(first, min(count, first + height))
  }

  private static func drawList(of model: Model, in frame: inout Frame, rows: Range<Int>, columns: Range<Int>) {
    guard !model.rows.isEmpty else {
      let text =
        if let problem = model.problem {
          problem
        } else {
          model.isLoading ? "Nothing is stored yet. Loading…" : "There are no moments."
        }
      for (line, row) in zip(TerminalText.wrapped(text, to: columns.count - 4), rows.dropFirst()) {
        frame.write(line, row: row, column: columns.lowerBound + 2)
      }
      return
    }
    let visible = visibleRows(count: model.rows.count, selection: model.selection, height: rows.count)
    for (index, row) in zip(visible, rows) {
      draw(model.rows[index], isSelected: index == model.selection, in: &frame, row: row, columns: columns)
    }
  }

  private static func draw(
    _ moment: Model.Row, isSelected: Bool, in frame: inout Frame, row: Int, columns: Range<Int>
  ) {
    let start = columns.lowerBound
    if isSelected { frame.write("▸", row: row, column: start, style: .accent) }
    if moment.isLiked {
      frame.write("♥", row: row, column: start + 2, style: .heart)
    } else {
      frame.write("·", row: row, column: start + 2, style: .faint)
    }
    if moment.isPending { frame.write("…", row: row, column: start + 3, style: .waiting) }

    var end = columns.upperBound - 1
    let count = TerminalText.padded(String(moment.likeCount), to: 3, alignment: .trailing)
    frame.write(count, row: row, column: end - 3, style: .faint)
    end -= 4
    if columns.count >= 64, let date = moment.date {
      frame.write(
        TerminalText.padded(date, to: 14, alignment: .trailing), row: row, column: end - 14, style: .faint)
      end -= 15
    }
    var column = start + 5
    column = frame.write(
      moment.title == nil ? moment.userName : moment.userName + ":", row: row, column: column, columns: end - column,
      style: .strong)
    if let title = moment.title, column + 1 < end {
      frame.write(title, row: row, column: column + 1, columns: end - column - 1)
    }
    if isSelected {
      frame.restyle(row: row, columns: start + 1..<columns.upperBound) { $0.attributes.formUnion(.inverse) }
    }
  }

  private static func drawPosition(of model: Model, in frame: inout Frame, row: Int, before column: Int) {
    guard !model.rows.isEmpty else { return }
    let text = " \(model.selection + 1)/\(model.rows.count) "
    frame.write(text, row: row, column: column - 1 - TerminalText.width(of: text), style: .faint)
  }

  // MARK: Detail

  private static func drawDetail(of model: Model, in frame: inout Frame, rows: Range<Int>, columns: Range<Int>) {
    guard let detail = model.detail else { return }
    // Where there is little room, what matters stands without air.
    let isRoomy = rows.count > stackedDetailRows
    var lines: [(text: String, style: TextStyle)] = [(detail.row.userName, .strong)]
    if let date = detail.row.date { lines.append((date, .faint)) }
    if isRoomy { lines.append(("", .plain)) }
    let liked = detail.row.isLiked ? "♥ " : "· "
    lines.append((liked + TimelineText.likes(detail.row.likeCount), detail.row.isLiked ? .heart : .plain))
    if detail.row.isPending { lines.append(("… waiting for the network", .waiting)) }
    if isRoomy { lines.append(("", .plain)) }
    if let title = detail.row.title {
      lines += TerminalText.wrapped(title, to: columns.count).map { ($0, .plain) }
      if isRoomy { lines.append(("", .plain)) }
    }
    if let url = detail.url { lines += TerminalText.wrapped(url, to: columns.count).map { ($0, .accent) } }
    if !detail.photos.isEmpty {
      lines.append((detail.photos.count == 1 ? "1 photo" : "\(detail.photos.count) photos", .plain))
      // Their names tell them apart where there is no room for all of their URLs.
      lines += detail.photos.map { (String($0.split(separator: "/").last ?? ""), .faint) }
    }
    for (line, row) in zip(lines, rows) {
      frame.write(line.text, row: row, column: columns.lowerBound, columns: columns.count, style: line.style)
    }
  }
}
