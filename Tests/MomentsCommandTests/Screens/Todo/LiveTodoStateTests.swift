import DataStore
import Foundation
import TerminalUI
import Testing
import Todo

@testable import MomentsCommand

struct LiveTodoStateTests {
  /// Holds the state in a class, so that expectations can change it.
  private final class Screen {
    var state = LiveTodoState()

    @discardableResult
    func press(_ key: Key, in list: LiveTodoState.List, _ form: LiveTodoState.Form?) -> LiveTodoState.Request? {
      state.press(key, in: list, form)
    }

    func model(of list: LiveTodoState.List, _ form: LiveTodoState.Form?) -> TodoScreen.Model {
      state.model(of: list, form)
    }
  }

  private let screen = Screen()
  private let milk = TodoItem(name: "milk")
  private let bread = TodoItem(name: "bread", isFinished: true)
  private var list: LiveTodoState.List { LiveTodoState.List(title: "2 todos", items: [milk, bread]) }

  @Test func `Keys make requests for the selected todo`() {
    #expect(screen.press(.character("x"), in: list, nil) == .edit(.toggle(milk)))
    #expect(screen.press(.down, in: list, nil) == nil)
    #expect(screen.press(.character(" "), in: list, nil) == .edit(.toggle(bread)))
    #expect(screen.press(.character("d"), in: list, nil) == .edit(.delete(bread)))
    #expect(screen.press(.character("e"), in: list, nil) == .openEdit(bread.id))
    #expect(screen.press(.enter, in: list, nil) == .openEdit(bread.id))
    #expect(screen.press(.character("a"), in: list, nil) == .openAdd)
    #expect(screen.press(.character("q"), in: list, nil) == .quit)
  }

  @Test func `In an empty list, only Quit and Add are offered, and other keys make no request`() {
    let empty = LiveTodoState.List(title: "0 todos", isClearEnabled: false)
    for key in [Key.character("x"), .character(" "), .character("d"), .enter, .character("c")] {
      #expect(screen.press(key, in: empty, nil) == nil)
    }
    #expect(screen.model(of: empty, nil).keys.map(\.key) == ["q", "a"])
  }

  @Test func `While Add is disabled, its key shows the reason`() {
    var full = list
    full.isAddEnabled = false
    #expect(screen.press(.character("a"), in: full, nil) == nil)
    #expect(screen.state.activity == "Add is disabled: 5 todos are unfinished.")
  }

  @Test func `Clearing the list requires y as confirmation, not another c`() {
    #expect(screen.press(.character("c"), in: list, nil) == nil)
    #expect(screen.press(.character("c"), in: list, nil) == nil)
    #expect(screen.state.activity == "Nothing was cleared.")
    screen.press(.character("c"), in: list, nil)
    #expect(screen.press(.character("y"), in: list, nil) == .edit(.clear))
    screen.state.completed(.clear)
    #expect(screen.state.activity == "All todos are deleted.")
    #expect(screen.press(.character("y"), in: list, nil) == nil)
  }

  @Test func `A form takes text, and can be completed when it has a name`() {
    var form = LiveTodoState.Form(name: "mil")
    #expect(screen.press(.character("k"), in: list, form) == .setName("milk"))
    #expect(screen.press(.tab, in: list, form) == .toggleFinished)
    #expect(screen.press(.enter, in: list, form) == nil)
    #expect(screen.state.activity == "A todo needs a name.")
    form.isDoneEnabled = true
    #expect(screen.press(.enter, in: list, form) == .done)
    #expect(screen.press(.escape, in: list, form) == .cancel)
    #expect(screen.model(of: list, form).keys.map(\.key) == ["esc", "enter", "tab", "^U"])
  }

  @Test func `An added todo is selected`() {
    screen.press(.character("a"), in: list, nil)
    screen.press(.enter, in: list, LiveTodoState.Form(name: "eggs", isDoneEnabled: true))
    var longer = list
    longer.items.append(TodoItem(name: "eggs"))
    #expect(screen.model(of: longer, nil).selection == 2)
  }

  @Test func `A failure is shown until the next activity, and again after another edit fails`() {
    var failed = list
    failed.error = .store(.readFailed(SystemError(code: 5, operation: "reading", path: "todo")))
    #expect(screen.model(of: failed, nil).problem == failed.error?.description)
    screen.press(.character("c"), in: failed, nil)
    #expect(screen.model(of: failed, nil).problem == nil)
    screen.press(.character("n"), in: failed, nil)
    #expect(screen.press(.character("x"), in: failed, nil) == .edit(.toggle(milk)))
    #expect(screen.model(of: failed, nil).problem == failed.error?.description)
  }

  @Test func `The result of an edit is shown as the activity`() {
    screen.state.completed(.toggle(milk))
    #expect(screen.state.activity == "Finished: milk")
    screen.state.completed(.toggle(bread))
    #expect(screen.state.activity == "Not finished: bread")
    screen.state.completed(.delete(bread))
    #expect(screen.state.activity == "Deleted: bread")
    screen.state.saveFailed("milk")
    #expect(screen.state.activity == "Not saved: milk")
  }
}
