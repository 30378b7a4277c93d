import Foundation
import TerminalUI
import TestRounds
import Testing

@testable import MomentsCommand

struct TodoScreenTests {
  private var model: TodoScreen.Model {
    TodoScreen.Model(
      title: "3 ToDos",
      rows: [
        .init(name: "Buy milk and bread", isFinished: false), .init(name: "写周报", isFinished: true),
        .init(name: "Ask everybody who was there what they remember of it", isFinished: false),
      ],
      selection: 2, activity: "Finish adding a new todo.",
      keys: [.init(key: "q", action: "quit"), .init(key: "a", action: "add"), .move, .init(key: "x", action: "finish")])
  }

  private var form: TodoScreen.Model.Form {
    .init(title: "Edit todo", name: "写周报", isFinished: true, liveSubscriptions: 3)
  }

  private func lines(of model: TodoScreen.Model, _ columns: Int, _ rows: Int) -> [String] {
    TodoScreen.frame(of: model, size: TerminalSize(columns: columns, rows: rows)).lines
  }

  @Test func `The todo screen fills 80×24, with the selected todo beside the list`() {
    let lines = lines(of: model, 80, 24)
    let emptyRow = String(repeating: " ", count: 45) + "│"
    #expect(
      lines[0...7] == [
        " 3 ToDos  2 unfinished", String(repeating: "─", count: 45) + "┬" + String(repeating: "─", count: 34),
        "  · Buy milk and bread                       │ Ask everybody who was there what",
        "  ✓ 写周报                                   │ they remember of it",
        "▸ · Ask everybody who was there what they r… │", emptyRow + " · not finished", emptyRow, emptyRow,
      ])
    #expect(
      lines[20...23] == [
        emptyRow, String(repeating: "─", count: 39) + " 3/3 ─┴" + String(repeating: "─", count: 34),
        " Finish adding a new todo.", " q quit  a add  j/k ↓/↑ move  x finish",
      ])
  }

  @Test func `The form is beside the list, below it on a narrow terminal, and instead of it on a small one`() {
    var model = model
    model.selection = 1
    model.form = form
    let wide = lines(of: model, 80, 24)
    #expect(wide[2].hasPrefix("  · Buy milk and bread"))
    #expect(wide[2].hasSuffix("│ Edit todo"))
    #expect(wide[4].hasSuffix("│ Name  写周报"))
    #expect(wide[6].hasSuffix("│ ✓ finished"))
    #expect(wide[8].hasSuffix("│ Resource tracing: 3"))
    #expect(
      lines(of: model, 40, 18)[2..<15] == [
        "  · Buy milk and bread", "▸ ✓ 写周报", "  · Ask everybody who was there what t…", "", "", "",
        String(repeating: "─", count: 34) + " 2/3 ─", " Edit todo", " Name  写周报", " ✓ finished", " Resource tracing: 3",
        "", "",
      ])
    #expect(
      lines(of: model, 40, 10)[2..<7] == [" Edit todo", " Name  写周报", " ✓ finished", " Resource tracing: 3", ""])
  }

  @Test func `The cursor is after the name`() {
    var model = model
    model.form = form
    let frame = TodoScreen.frame(of: model, size: TerminalSize(columns: 80, rows: 24))
    let inverseColumns = frame[row: 4].enumerated().filter { $0.element.style.attributes == .inverse }.map(\.offset)
    // The selected row of the list is inverse too. The form begins at column 47, and "Name  " and the name have six
    // columns each.
    #expect(inverseColumns.last == 47 + 6 + 6)
  }

  @Test func `An empty todo screen shows the reason`() {
    let placeholder = { (model: TodoScreen.Model) in
      self.lines(of: model, 80, 24)[3].prefix { $0 != "│" }.trimmingCharacters(in: .whitespaces)
    }
    #expect(placeholder(.init(title: "Todo", isLoaded: false)) == "Loading…")
    #expect(placeholder(.init(title: "Todo")) == "There is nothing to do. Press a to add.")
    #expect(placeholder(.init(title: "Todo", problem: "The disk is full.")) == "The disk is full.")
  }

  @Test func `A failure takes the place of the latest activity`() {
    var model = model
    model.problem = "The disk is full."
    model.canAdd = false
    let lines = lines(of: model, 80, 24)
    // The title row shows both that no todo can be added and that there is a failure.
    #expect(lines[0].hasSuffix("limit reached · failed"))
    #expect(lines[22] == " The disk is full.")
  }

  @Test func `A failure that doesn't fit on its line is also shown beside the list`() {
    var model = model
    let reason = "The disk is full. " + String(repeating: "Much too full. ", count: 5)
    model.problem = reason + "Free some space."
    let lines = lines(of: model, 80, 24)
    #expect(lines[22].hasSuffix("…"))
    let linesBesideList = lines[6..<12].map { $0.drop { $0 != "│" }.dropFirst(2) }.filter { !$0.isEmpty }
    #expect(linesBesideList.joined(separator: " ") == model.problem)
    // A failure that fits on its line isn't shown beside the list.
    model.problem = "The disk is full."
    #expect(self.lines(of: model, 80, 24)[6].hasSuffix("│"))
  }

  @Test func `At every size, no line of the todo screen is wider than the terminal`() {
    var model = model
    for form in [nil, form] {
      model.form = form
      for columns in stride(from: 0, to: 100, by: Rounds.step(3)) {
        for rows in [0, 1, 9, 10, 17, 18, 24] {
          let frame = TodoScreen.frame(of: model, size: TerminalSize(columns: columns, rows: rows))
          #expect(frame.lines.allSatisfy { TerminalText.width(of: $0) <= columns })
        }
      }
    }
  }
}
