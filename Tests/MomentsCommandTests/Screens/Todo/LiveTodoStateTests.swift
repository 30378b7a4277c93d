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
    func press(_ key: Key, in list: LiveTodoState.List, form: LiveTodoState.Form? = nil) -> LiveTodoState.Request? {
      state.press(key, in: list, form)
    }

    func model(of list: LiveTodoState.List, form: LiveTodoState.Form? = nil) -> TodoScreen.Model {
      state.model(of: list, form)
    }
  }

  private let screen = Screen()
  private let milk = TodoItem(name: "milk")
  private let bread = TodoItem(name: "bread", isFinished: true)
  private var list: LiveTodoState.List { LiveTodoState.List(title: "2 todos", items: [milk, bread]) }

  @Test func `Keys make requests, and the edits are of the selected todo`() {
    #expect(screen.press(.character("x"), in: list) == .edit(.toggle(milk)))
    #expect(screen.press(.down, in: list) == nil)
    #expect(screen.press(.character(" "), in: list) == .edit(.toggle(bread)))
    #expect(screen.press(.character("d"), in: list) == .edit(.delete(bread)))
    #expect(screen.press(.character("e"), in: list) == .openEdit(bread.id))
    #expect(screen.press(.enter, in: list) == .openEdit(bread.id))
    #expect(screen.press(.character("a"), in: list) == .openAdd)
    #expect(screen.press(.character("q"), in: list) == .quit)
  }

  @Test func `In an empty list, only Quit and Add are offered, and other keys make no request`() {
    let emptyList = LiveTodoState.List(title: "0 todos", isClearEnabled: false)
    for key in [Key.character("x"), .character(" "), .character("d"), .enter, .character("c")] {
      #expect(screen.press(key, in: emptyList) == nil)
    }
    #expect(screen.model(of: emptyList).keys.map(\.key) == ["q", "a"])
  }

  @Test func `While Add is disabled, its key shows the reason`() {
    var fullList = list
    fullList.isAddEnabled = false
    #expect(screen.press(.character("a"), in: fullList) == nil)
    // The number is the limit of unfinished todos, whatever the list contains.
    #expect(screen.state.activity == "Add is disabled: 5 todos are unfinished.")
  }

  @Test func `Clearing the list requires y as confirmation, not another c`() {
    #expect(screen.press(.character("c"), in: list) == nil)
    #expect(screen.press(.character("c"), in: list) == nil)
    #expect(screen.state.activity == "Nothing was cleared.")
    screen.press(.character("c"), in: list)
    #expect(screen.press(.character("y"), in: list) == .edit(.clear))
    screen.state.completed(.clear)
    #expect(screen.state.activity == "All todos are deleted.")
    #expect(screen.press(.character("y"), in: list) == nil)
  }

  @Test func `A form takes text, and can be completed while Done is enabled`() {
    var form = LiveTodoState.Form(name: "mil")
    #expect(screen.press(.character("k"), in: list, form: form) == .setName("milk"))
    #expect(screen.press(.tab, in: list, form: form) == .toggleFinished)
    #expect(screen.press(.enter, in: list, form: form) == nil)
    #expect(screen.state.activity == "A todo needs a name.")
    form.isDoneEnabled = true
    #expect(screen.press(.enter, in: list, form: form) == .done)
    #expect(screen.press(.escape, in: list, form: form) == .cancel)
    #expect(screen.model(of: list, form: form).keys.map(\.key) == ["esc", "enter", "tab", "^U"])
  }

  @Test func `An added todo is selected`() {
    screen.press(.character("a"), in: list)
    screen.press(.enter, in: list, form: LiveTodoState.Form(name: "eggs", isDoneEnabled: true))
    var longerList = list
    longerList.items.append(TodoItem(name: "eggs"))
    #expect(screen.model(of: longerList).selection == 2)
  }

  @Test func `A failure is shown until the next activity, and again after another edit fails`() {
    var listWithError = list
    listWithError.error = .store(.readFailed(SystemError(code: 5, operation: "reading", path: "todo")))
    #expect(screen.model(of: listWithError).problem == listWithError.error?.description)
    screen.press(.character("c"), in: listWithError)
    #expect(screen.model(of: listWithError).problem == nil)
    screen.press(.character("n"), in: listWithError)
    #expect(screen.press(.character("x"), in: listWithError) == .edit(.toggle(milk)))
    // The edit fails with the same error, so the list is the same afterwards.
    #expect(screen.model(of: listWithError).problem == listWithError.error?.description)
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
