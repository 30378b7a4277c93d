internal import TerminalUI

/// Draws the live todo list.
///
/// The selected todo, or the form that adds or edits a todo, is beside the list. On a narrow terminal, it is below the
/// list. A terminal that is both narrow and low shows only the form if it is open, and only the list otherwise.
enum TodoScreen {
  /// The contents of the screen.
  struct Model: Hashable, Sendable {
    /// A todo in the list.
    struct Row: Hashable, Sendable {
      var name: String
      var isFinished: Bool
    }

    /// The form in which a todo is added or edited.
    struct Form: Hashable, Sendable {
      var title: String
      var name: String
      var isFinished: Bool
      /// The number of live channel subscriptions in the whole process, shown as "Resource tracing".
      var liveSubscriptions: Int
    }

    var title: String
    /// Whether the list has been loaded.
    var isLoaded = true
    var canAdd = true
    var rows: [Row] = []
    /// The index of the selected row.
    var selection = 0
    /// The open form; `nil` if none is open.
    var form: Form?
    /// The latest failure; `nil` if there is none, or if it is hidden.
    var problem: String?
    /// The description of the latest activity.
    var activity = ""
    /// The hints for the keys, most important first.
    var keys: [KeyHint] = []
  }

  static func frame(of model: Model, size: TerminalSize) -> Frame {
    chrome(of: model).frame(size: size) { frame, body in
      let layout = ListAndDetail(dividing: body, of: &frame)
      if let form = model.form {
        if let detail = layout.detail {
          drawList(of: model, in: &frame, layout)
          draw(form, in: &frame, rows: detail.rows, columns: detail.columns, isRoomy: layout.isDetailRoomy)
        } else {
          draw(form, in: &frame, rows: body, columns: 1..<size.columns - 1, isRoomy: false)
        }
      } else {
        drawList(of: model, in: &frame, layout)
        if let detail = layout.detail, model.rows.indices.contains(model.selection) {
          // The line at the bottom cuts off the end of a long problem. The end may be advice, so the problem is shown
          // here in full.
          let longProblem = model.problem.flatMap { TerminalText.width(of: $0) > size.columns - 2 ? $0 : nil }
          draw(model.rows[model.selection], problem: longProblem, in: &frame, detail, isRoomy: layout.isDetailRoomy)
        }
      }
    }
  }

  private static func chrome(of model: Model) -> ScreenChrome {
    let unfinishedCount = model.rows.count { !$0.isFinished }
    var states: [(text: String, style: TextStyle)] = []
    if model.isLoaded, !model.canAdd { states.append(("limit reached", .waiting)) }
    if model.problem != nil { states.append(("failed", .bad)) }
    return ScreenChrome(
      title: model.title, counts: model.rows.isEmpty ? nil : "\(unfinishedCount) unfinished", states: states,
      activity: model.problem ?? model.activity, activityStyle: model.problem == nil ? .plain : .bad,
      keys: model.keys)
  }

  // MARK: List

  private static func drawList(of model: Model, in frame: inout Frame, _ layout: ListAndDetail) {
    guard !model.rows.isEmpty else {
      layout.drawPlaceholder(
        model.problem ?? (model.isLoaded ? "There is nothing to do. Press a to add." : "Loading…"), in: &frame)
      return
    }
    layout.drawRows(count: model.rows.count, selection: model.selection, in: &frame) { index, row, frame in
      let todo = model.rows[index]
      let start = layout.list.columns.lowerBound
      frame.write(todo.isFinished ? "✓" : "·", row: row, column: start + 2, style: todo.isFinished ? .good : .faint)
      frame.write(
        todo.name, row: row, column: start + 4, columns: layout.list.columns.count - 5,
        style: todo.isFinished ? .faint : .plain)
    }
  }

  // MARK: Detail

  private static func draw(
    _ todo: Model.Row, problem: String?, in frame: inout Frame, _ area: ListAndDetail.Area, isRoomy: Bool
  ) {
    var lines: [(text: String, style: TextStyle)] = TerminalText.wrapped(todo.name, to: area.columns.count).map {
      ($0, .strong)
    }
    if isRoomy { lines.append(("", .plain)) }
    lines.append(todo.isFinished ? ("✓ finished", .good) : ("· not finished", .plain))
    if let problem {
      if isRoomy { lines.append(("", .plain)) }
      lines += TerminalText.wrapped(problem, to: area.columns.count).map { ($0, .bad) }
    }
    for (line, row) in zip(lines, area.rows) {
      frame.write(line.text, row: row, column: area.columns.lowerBound, columns: area.columns.count, style: line.style)
    }
  }

  private static func draw(
    _ form: Model.Form, in frame: inout Frame, rows: Range<Int>, columns: Range<Int>, isRoomy: Bool
  ) {
    let spacing = isRoomy ? 1 : 0
    var row = rows.lowerBound
    frame.write(form.title, row: row, column: columns.lowerBound, columns: columns.count, style: .strong)
    row += 1 + spacing
    let labelEnd = frame.write("Name  ", row: row, column: columns.lowerBound, style: .faint)
    TextField.draw(form.name, isFocused: true, in: &frame, row: row, columns: labelEnd..<columns.upperBound)
    row += 1 + spacing
    frame.write(
      form.isFinished ? "✓ finished" : "· not finished", row: row, column: columns.lowerBound,
      style: form.isFinished ? .good : .plain)
    row += 1 + spacing
    frame.write(
      "Resource tracing: \(form.liveSubscriptions)", row: row, column: columns.lowerBound, columns: columns.count,
      style: .faint)
  }
}
