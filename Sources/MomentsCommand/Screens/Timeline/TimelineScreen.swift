internal import TerminalUI

/// Draws the live timeline.
///
/// From top to bottom, the screen shows the user's name and the age of the timeline, the list, the latest activity, and
/// the keys. The selected moment is beside the list, or below it on a narrow terminal. A terminal that is both narrow
/// and low shows the list alone.
enum TimelineScreen {
  static func frame(of model: Model, size: TerminalSize) -> Frame {
    chrome(of: model).frame(size: size) { frame, body in
      let layout = ListAndDetail(dividing: body, of: &frame)
      drawList(of: model, in: &frame, layout)
      drawDetail(of: model, in: &frame, layout)
    }
  }

  private static func chrome(of model: Model) -> ScreenChrome {
    let moments = TimelineText.moments(model.rows.count)
    return ScreenChrome(
      title: model.userName ?? "Moments",
      counts: model.rows.isEmpty ? nil : "\(moments) · \(TimelineText.likes(model.likeCount))",
      states: states(of: model), activity: model.activity, keys: model.keys)
  }

  private static func states(of model: Model) -> [(text: String, style: TextStyle)] {
    var states: [(text: String, style: TextStyle)] = []
    switch model.source {
    case .stored(let age): states.append(("stored \(age)", .waiting))
    case .fetched(let age): states.append(("fetched \(age)", .good))
    case nil: break
    }
    if model.pendingCount > 0 { states.append(("\(model.pendingCount) pending", .waiting)) }
    if model.isLoading { states.append(("loading…", .accent)) }
    if !model.isOnline {
      states.append(("offline", .bad))
    } else if model.problem != nil {
      states.append(("failed", .bad))
    }
    return states
  }

  // MARK: List

  private static func drawList(of model: Model, in frame: inout Frame, _ layout: ListAndDetail) {
    guard !model.rows.isEmpty else {
      let text =
        if let problem = model.problem {
          problem
        } else if !model.isRead {
          "Loading…"
        } else {
          model.isLoading ? "Nothing is stored yet. Loading…" : "There are no moments."
        }
      layout.drawPlaceholder(text, in: &frame)
      return
    }
    layout.drawRows(count: model.rows.count, selection: model.selection, in: &frame) { index, row, frame in
      draw(model.rows[index], in: &frame, row: row, columns: layout.list.columns)
    }
  }

  private static func draw(_ moment: Model.Row, in frame: inout Frame, row: Int, columns: Range<Int>) {
    let start = columns.lowerBound
    if moment.isLiked {
      frame.write("♥", row: row, column: start + 2, style: .heart)
    } else {
      frame.write("·", row: row, column: start + 2, style: .faint)
    }
    if moment.isPending { frame.write("…", row: row, column: start + 3, style: .waiting) }

    // The columns of the user and the title end here. The number of likes and the date are to the right of them.
    var end = columns.upperBound - 1
    let likeCount = TerminalText.padded(String(moment.likeCount), to: 3, alignment: .trailing)
    frame.write(likeCount, row: row, column: end - 3, style: .faint)
    end -= 4
    // A list of fewer than 64 columns has none to spare for dates.
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
  }

  // MARK: Detail

  private static func drawDetail(of model: Model, in frame: inout Frame, _ layout: ListAndDetail) {
    guard let detail = model.detail, let (rows, columns) = layout.detail.map({ ($0.rows, $0.columns) }) else { return }
    // A small terminal shows no blank lines.
    let isRoomy = layout.isDetailRoomy
    var lines: [(text: String, style: TextStyle)] = [(detail.row.userName, .strong)]
    if let date = detail.row.date { lines.append((date, .faint)) }
    if isRoomy { lines.append(("", .plain)) }
    let mark = detail.row.isLiked ? "♥ " : "· "
    lines.append((mark + TimelineText.likes(detail.row.likeCount), detail.row.isLiked ? .heart : .plain))
    if detail.row.isPending { lines.append(("… waiting for the server", .waiting)) }
    if isRoomy { lines.append(("", .plain)) }
    if let title = detail.row.title {
      lines += TerminalText.wrapped(title, to: columns.count).map { ($0, .plain) }
      if isRoomy { lines.append(("", .plain)) }
    }
    if let url = detail.url { lines += TerminalText.wrapped(url, to: columns.count).map { ($0, .accent) } }
    if !detail.photos.isEmpty {
      lines.append((detail.photos.count == 1 ? "1 photo" : "\(detail.photos.count) photos", .plain))
      // Only the file names, which distinguish the photos, because there may be no room for their URLs.
      lines += detail.photos.map { (String($0.split(separator: "/").last ?? ""), .faint) }
    }
    for (line, row) in zip(lines, rows) {
      frame.write(line.text, row: row, column: columns.lowerBound, columns: columns.count, style: line.style)
    }
  }
}
