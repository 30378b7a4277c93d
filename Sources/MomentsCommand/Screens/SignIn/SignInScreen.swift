internal import TerminalUI

/// Draws the sign-in screen.
enum SignInScreen {
  /// A field or a button.
  enum Control: Hashable, Sendable, CaseIterable {
    case username
    case password
    case button
  }

  /// The contents of the screen, with the length of the password in place of the password.
  struct Model: Hashable, Sendable {
    var isSignedIn = false
    var isBusy = false
    var username = ""
    var passwordLength = 0
    var buttonTitle = "Submit"
    /// The enabled controls.
    var enabled: Set<Control> = []
    /// The control that receives keys; `nil` while all controls are disabled.
    var focus: Control?
    /// A message about missing input, a failure, a sign-out or the signed-in user; empty if there is none, or while it
    /// is hidden.
    var message = ""
    /// The dates of the recent sign-ins, or the reason why they could not be loaded.
    var recentSignIns: [String] = []
    /// The description of the latest activity.
    var activity = ""
    /// The hints for the keys, most important first.
    var keys: [KeyHint] = []
  }

  /// The column at which the labels, the button and the lines below it begin.
  private static let textColumn = 3
  /// The column at which the fields begin, after their labels.
  private static let fieldColumn = 13

  static func frame(of model: Model, size: TerminalSize) -> Frame {
    let state: (String, TextStyle) =
      model.isBusy ? ("busy", .accent) : model.isSignedIn ? ("signed in", .good) : ("signed out", .faint)
    let chrome = ScreenChrome(title: "Sign in", states: [state], activity: model.activity, keys: model.keys)
    return chrome.frame(size: size) { frame, body in
      // A small terminal shows no blank lines.
      let spacing = body.count > 10 ? 1 : 0
      var row = body.lowerBound + spacing
      drawField(.username, "Username", model.username, of: model, in: &frame, row: row)
      row += 1
      // One dot for each character, so that only the length of the password is shown.
      let dots = String(repeating: "•", count: model.passwordLength)
      drawField(.password, "Password", dots, of: model, in: &frame, row: row)
      row += 1 + spacing
      drawButton(of: model, in: &frame, row: row)
      row += 1 + spacing
      let lines = lines(of: model, columns: size.columns - 2 * textColumn, isRoomy: spacing > 0)
      for (line, lineRow) in zip(lines, row..<body.upperBound) {
        frame.write(
          line.text, row: lineRow, column: textColumn, columns: size.columns - textColumn - 1, style: line.style)
      }
    }
  }

  private static func drawField(
    _ control: Control, _ label: String, _ text: String, of model: Model, in frame: inout Frame, row: Int
  ) {
    let isFocused = model.focus == control
    if isFocused { frame.write("▸", row: row, column: 1, style: .accent) }
    frame.write(label, row: row, column: textColumn, style: model.enabled.contains(control) ? .plain : .faint)
    TextField.draw(
      text, isFocused: isFocused, in: &frame, row: row, columns: fieldColumn..<frame.size.columns - 1)
  }

  private static func drawButton(of model: Model, in frame: inout Frame, row: Int) {
    let isFocused = model.focus == .button
    if isFocused { frame.write("▸", row: row, column: 1, style: .accent) }
    let style: TextStyle =
      isFocused
      ? TextStyle(attributes: .inverse) : model.enabled.contains(.button) ? .strong : .faint
    let endColumn = frame.write("[ \(model.buttonTitle) ]", row: row, column: textColumn, style: style)
    if model.isBusy { frame.write("asking the server…", row: row, column: endColumn + 2, style: .accent) }
  }

  private static func lines(
    of model: Model, columns: Int, isRoomy: Bool
  ) -> [(text: String, style: TextStyle)] {
    var lines: [(text: String, style: TextStyle)] = wrapped(model.message, to: columns).map { ($0, .plain) }
    if !model.recentSignIns.isEmpty {
      if isRoomy { lines.append(("", .plain)) }
      lines.append(("Recent sign-ins", .strong))
      // In place of the dates, there may be a failure, whose text may be wider than the terminal.
      lines += model.recentSignIns.flatMap { wrapped($0, to: columns) }.map { ($0, .faint) }
    }
    return lines
  }

  /// Returns the lines of a text of several paragraphs, none wider than `columns`.
  private static func wrapped(_ text: String, to columns: Int) -> [String] {
    text.split(separator: "\n").flatMap { TerminalText.wrapped(String($0), to: columns) }
  }
}
