import DataStore
import Foundation
import Multicast
import MulticastTesting
import TerminalUI
import TestSupport
import Testing
import Todo

@testable import MomentsCommand

@MainActor @Suite(.timeLimit(.minutes(15))) struct LiveTodoTests {
  /// A terminal of 24 lines: the header (0), the body (2 to 20), the latest activity (22) and the key hints (23).
  private let terminal = FakeTerminal()
  private let store = InMemoryStore()

  /// Runs a live list during `body`, then leaves the screen and returns the stored items.
  @discardableResult
  private func withLiveTodo(
    store: (any KeyValueStore)? = nil, _ body: (FakeTerminal) async throws -> Void
  ) async throws -> [TodoItem] {
    let todoList = TodoList(store: store ?? self.store)
    let session = ScreenSession(
      of: LiveTodo(todoList: todoList, liveSubscriptions: { 3 }), on: terminal,
      pause: { duration in
        // An incomplete key sequence never times out. The pauses between frames end at once.
        if duration == ScreenSession.escapeDuration { try await Task.sleep(for: .seconds(1_000)) }
      })
    async let ending = session.run()
    try await body(terminal)
    terminal.type("q")
    #expect(await ending == .quit)
    return try await todoList.fetchItems().elements
  }

  private func add(_ names: String...) async {
    for name in names {
      _ = await terminal.lines(afterTyping: "a") { $0[2].hasSuffix("Add Todo") }
      _ = await terminal.lines(afterTyping: "\(name)\r") { lines in
        !lines[2].hasSuffix("Add Todo") && lines.contains { $0.hasPrefix("▸ · \(name)") }
      }
    }
  }

  @Test func `An empty list shows how to add a todo`() async throws {
    try await withLiveTodo { terminal in
      let lines = await terminal.lines { !$0[3].contains("Loading…") }
      #expect(lines[0] == " Todo")
      #expect(lines[3].hasPrefix("  There is nothing to do. Press a to add."))
      #expect(lines[23] == " q quit  a add")
    }
  }

  @Test func `A todo is typed, added, and selected`() async throws {
    let items = try await withLiveTodo { terminal in
      _ = await terminal.lines { $0[3].contains("nothing to do") }
      let emptyForm = await terminal.lines(afterTyping: "a") { $0[2].hasSuffix("Add Todo") }
      #expect(emptyForm[8].hasSuffix("Resource tracing: 3"))
      #expect(emptyForm[23] == " esc cancel  tab toggle finished  ^U clear the name")
      // The form takes letters as text, even those that are keys of the list.
      let typed = await terminal.lines(afterTyping: "quick 写") { $0[4].hasSuffix("Name  quick 写") }
      #expect(typed[23] == " esc cancel  enter done  tab toggle finished  ^U clear the name")
      _ = await terminal.lines(afterTyping: "\u{7F}\u{7F}") { $0[4].hasSuffix("Name  quick") }
      _ = await terminal.lines(afterTyping: "\t") { $0[6].hasSuffix("✓ finished") }
      let added = await terminal.lines(afterTyping: "\r") {
        $0[22] == " Finish adding a new todo." && $0[2].hasPrefix("▸ ✓")
      }
      #expect(added[0] == " 1 ToDos  0 unfinished")
    }
    #expect(items.map(\.name) == ["quick"])
    #expect(items.map(\.isFinished) == [true])
  }

  @Test func `A todo without a name is not added, and neither is a cancelled one`() async throws {
    let items = try await withLiveTodo { terminal in
      _ = await terminal.lines { $0[3].contains("nothing to do") }
      _ = await terminal.lines(afterTyping: "a") { $0[2].hasSuffix("Add Todo") }
      _ = await terminal.lines(afterTyping: "\r") { $0[22] == " A todo needs a name." }
      // The second Escape shows that the first one starts no sequence, so the first is decoded immediately. The
      // activity is the same whether the form adds a todo or is cancelled, so the stored items are checked too.
      _ = await terminal.lines(afterTyping: "never mind\u{1B}\u{1B}") { $0[22] == " Finish adding a new todo." }
    }
    #expect(items == [])
  }

  @Test func `Todos are edited, finished, unfinished and deleted`() async throws {
    let items = try await withLiveTodo { terminal in
      _ = await terminal.lines { $0[3].contains("nothing to do") }
      await add("Buy milk", "写周报", "Rest")
      _ = await terminal.lines(afterTyping: "g") { $0[2].hasPrefix("▸") }
      let form = await terminal.lines(afterTyping: "e") { $0[2].hasSuffix("Edit todo") }
      #expect(form[4].hasSuffix("Name  Buy milk"))
      _ = await terminal.lines(afterTyping: " and bread\r") {
        $0[22] == " Finish editing a todo." && $0[2].contains("bread  ")
      }
      _ = await terminal.lines(afterTyping: "jx") { $0[22] == " Finished: 写周报" && $0[3].hasPrefix("▸ ✓ 写周报") }
      let unfinished = await terminal.lines(afterTyping: " ") {
        $0[22] == " Not finished: 写周报" && $0[3].hasPrefix("▸ · 写周报")
      }
      #expect(unfinished[23] == " q quit  a add  j/k ↓/↑ move  x finish  e edit  d delete  c clear")
      _ = await terminal.lines(afterTyping: "d") { $0[22] == " Deleted: 写周报" && $0[3].hasPrefix("▸ · Rest") }
    }
    #expect(items.map(\.name) == ["Buy milk and bread", "Rest"])
  }

  @Test func `At five unfinished todos, no todo can be added`() async throws {
    try await withLiveTodo { terminal in
      _ = await terminal.lines { $0[3].contains("nothing to do") }
      await add("1", "2", "3", "4", "5")
      let full = await terminal.lines(afterTyping: "a") { $0[22] == " Add is disabled: 5 todos are unfinished." }
      #expect(full[0].hasSuffix("limit reached"))
      #expect(!full[23].contains("a add"))
      #expect(!full[2].hasSuffix("Add Todo"))
    }
  }

  @Test func `The list is cleared only when y confirms the deletion`() async throws {
    let items = try await withLiveTodo { terminal in
      _ = await terminal.lines { $0[3].contains("nothing to do") }
      await add("1", "2")
      _ = await terminal.lines(afterTyping: "c") {
        $0[22] == " Delete all of 2 ToDos? Press y to delete, or any other key to cancel."
      }
      // The key that cancels has no effect on the list.
      let kept = await terminal.lines(afterTyping: "d") { $0[22] == " Nothing was cleared." }
      #expect(kept[0] == " 2 ToDos  2 unfinished")
      // Holding down `c` doesn't clear the list either.
      _ = await terminal.lines(afterTyping: "cccc") { $0[22] == " Nothing was cleared." && $0[0].hasPrefix(" 2 ToDos") }
      _ = await terminal.lines(afterTyping: "cy") { $0[22] == " All todos are deleted." && $0[0] == " Todo" }
    }
    #expect(items == [])
  }

  @Test func `Stored todos are shown first, then todos that another list adds to the same store`() async throws {
    try await TodoList(store: store).add(TodoItem(name: "Before"))
    try await withLiveTodo { terminal in
      _ = await terminal.lines { $0[2].hasPrefix("▸ · Before") }
      try await TodoList(store: store).add(TodoItem(name: "Meanwhile"))
      _ = await terminal.lines { $0[3].hasPrefix("  · Meanwhile") }
    }
  }

  @Test func `A list that cannot be saved shows the failure and stays unchanged`() async throws {
    let saveFailureFlag = Flag()
    let store = InterposedStore(beforeSaving: { _ throws(StoreError) in
      if saveFailureFlag.isRaised { throw .writeFailed(SystemError(code: ENOSPC, operation: "write", path: "todos")) }
    })
    try await TodoList(store: store).add(TodoItem(name: "Kept"))
    let items = try await withLiveTodo(store: store) { terminal in
      _ = await terminal.lines { $0[2].hasPrefix("▸ · Kept") }
      saveFailureFlag.raise()
      let failed = await terminal.lines(afterTyping: "x") { $0[0].hasSuffix("failed") }
      #expect(failed[22].hasPrefix(" The store could not write; the old value is still there."))
      #expect(failed[2].hasPrefix("▸ · Kept"))
      // An earlier failure doesn't hide a question.
      _ = await terminal.lines(afterTyping: "c") { $0[22].hasPrefix(" Delete all of 1 ToDos?") }
      _ = await terminal.lines(afterTyping: "n") { $0[22] == " Nothing was cleared." && !$0[0].hasSuffix("failed") }
      _ = await terminal.lines(afterTyping: "x") { $0[0].hasSuffix("failed") }
      _ = await terminal.lines(afterTyping: "a") { $0[2].hasSuffix("Add Todo") && !$0[0].hasSuffix("failed") }
      _ = await terminal.lines(afterTyping: "b\r") { $0[0].hasSuffix("failed") && !$0[2].hasSuffix("Add Todo") }
      let reopenedForm = await terminal.lines(afterTyping: "a") { $0[2].hasSuffix("Add Todo") }
      #expect(reopenedForm[22] == " Not saved: b")
      _ = await terminal.lines(afterTyping: "\u{1B}\u{1B}") { !$0[2].hasSuffix("Add Todo") }
    }
    #expect(items.map(\.name) == ["Kept"])
  }

  @Test func `Keys typed ahead reach the list or the form that they are meant for`() async throws {
    let items = try await withLiveTodo { terminal in
      _ = await terminal.lines { $0[3].contains("nothing to do") }
      _ = await terminal.lines(afterTyping: "aOne\raTwo\r") { $0[3].hasPrefix("▸ · Two") }
    }
    #expect(items.map(\.name) == ["One", "Two"])
  }

  @Test func `A key after an edit refers to the list as it is after the edit`() async throws {
    let items = try await withLiveTodo { terminal in
      _ = await terminal.lines { $0[3].contains("nothing to do") }
      await add("Kept")
      _ = await terminal.lines(afterTyping: "aGone\rd") { $0[22] == " Deleted: Gone" && $0[0].hasPrefix(" 1 ToDos") }
      _ = await terminal.lines(afterTyping: "xx") { $0[22] == " Not finished: Kept" && $0[2].hasPrefix("▸ · Kept") }
      await add("1", "2", "3", "4")
      // Another todo can be added only because one was finished.
      _ = await terminal.lines(afterTyping: "xa5\r") { $0[7].hasPrefix("▸ · 5") }
      _ = await terminal.lines(afterTyping: "gdd") { $0[22] == " Deleted: 1" && $0[2].hasPrefix("▸ · 2") }
    }
    #expect(items.map(\.name) == ["2", "3", "4", "5"])
  }

  @Test func `Pasted lines are one name in the form, and are not keys in the list`() async throws {
    let items = try await withLiveTodo { terminal in
      _ = await terminal.lines { $0[3].contains("nothing to do") }
      await add("Kept")
      // A terminal encloses pasted text in `ESC [200~` and `ESC [201~`.
      terminal.type("\u{1B}[200~d\ncy\nq\u{1B}[201~")
      _ = await terminal.lines(afterTyping: "a\u{1B}[200~One\ncy\n\u{1B}[201~") { $0[4].hasSuffix("Name  One cy") }
      _ = await terminal.lines(afterTyping: "\r") { $0[3].hasPrefix("▸ · One cy") }
    }
    #expect(items.map(\.name) == ["Kept", "One cy"])
  }

  @Test(arguments: [(keys: "aGone\rd", countAfterFirstEdit: 3), (keys: "gdd", countAfterFirstEdit: 1)])
  func `Keys wait until a slow list shows the edits of earlier keys`(
    keys: String, countAfterFirstEdit: Int
  ) async throws {
    for name in ["Kept", "Last"] { try await TodoList(store: store).add(TodoItem(name: name)) }
    let lateStore = LateStore(store)
    let items = try await withLiveTodo(store: lateStore) { terminal in
      // The list fetches the stored items when it starts, so it shows them even before the gate opens.
      _ = await terminal.lines { $0[2].hasPrefix("▸ · Kept") }
      terminal.type(keys)
      for await change in try await store.changes(of: TodoList.key)
      where change.stored?.value.elements.count == countAfterFirstEdit { break }
      // Enough time for the last key to take effect if it didn't wait for the list.
      for _ in 0..<100 { await Task.yield() }
      lateStore.gate.open()
    }
    // `aGone\rd` deletes only the todo that it adds, and `gdd` deletes both stored todos.
    #expect(items.map(\.name) == (countAfterFirstEdit == 3 ? ["Kept", "Last"] : []))
  }

  @Test func `Edits made before Ctrl-C are saved`() async throws {
    let todoList = TodoList(store: store)
    let session = ScreenSession(
      of: LiveTodo(todoList: todoList, liveSubscriptions: { 3 }), on: terminal, pause: { _ in })
    async let ending = session.run()
    _ = await terminal.lines { $0[3].contains("nothing to do") }
    terminal.type("aIn one go\r\u{3}")
    #expect(await ending == .interrupted)
    #expect(try await todoList.fetchItems().elements.map(\.name) == ["In one go"])
  }
}

/// A store whose first observer receives no changes until a gate opens.
///
/// The first observer is the list on the screen.
private struct LateStore: ForwardingStore {
  let base: InMemoryStore
  let gate = Gate()
  private let observedFlag = Flag()

  init(_ base: InMemoryStore) {
    self.base = base
  }

  func changes<Value>(of key: StoreKey<Value>) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    let changes = try await base.changes(of: key)
    let isFirstObserver = observedFlag.raise()
    guard isFirstObserver else { return changes }
    let lateChanges = MulticastRelay<StoreChange<Value>>(replay: 1, buffering: .unbounded)
    Task {
      for await change in changes {
        await gate.pass()
        lateChanges.send(change)
      }
    }
    return lateChanges.stream
  }
}

/// A flag that can be raised but not lowered.
private final class Flag: Sendable {
  private let state = Lock(false)

  var isRaised: Bool { state.withLock(\.self) }

  /// Raises the flag, and returns whether this is the first call.
  @discardableResult
  func raise() -> Bool {
    state.withLock { isRaised in
      defer { isRaised = true }
      return !isRaised
    }
  }
}
