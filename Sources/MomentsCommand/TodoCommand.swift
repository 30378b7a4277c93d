internal import DataStore
internal import Foundation
internal import Multicast
internal import TerminalUI
internal import Todo

/// The command `moments todo`: shows a todo list, live in a terminal.
///
/// Without a terminal, a script adds, edits and finishes todos, and prints what the screens show. If the list has no
/// room for another unfinished todo, the script clears it first.
@MainActor
struct TodoCommand {
  /// The folder of the list; `nil` for the default folder with a terminal, and for memory without one.
  let dataFolder: URL?
  let console: Console
  /// The terminal for the live screen; `nil` to print lines.
  let terminal: (any TerminalType)?
  /// Returns the number of live subscriptions, shown as "Resource tracing" when a todo is added or edited.
  let liveSubscriptions: @MainActor () -> Int

  init(
    dataFolder: URL?, console: Console, terminal: (any TerminalType)? = nil,
    liveSubscriptions: @escaping @MainActor () -> Int = { MulticastDiagnostics.liveSubscriptions }
  ) {
    self.dataFolder = dataFolder
    // The names of todos are untrusted text, because another program may have written them into the folder.
    self.console = console.printable
    self.terminal = terminal
    self.liveSubscriptions = liveSubscriptions
  }

  func run() async -> CommandStatus {
    do throws(TodoListError) {
      if let terminal { return try await showLive(on: terminal) }
      try await playScript()
      return .success
    } catch {
      console.error("moments: \(error)")
      return .inputOutput
    }
  }

  private func showLive(on terminal: any TerminalType) async throws(TodoListError) -> CommandStatus {
    let folder = dataFolder ?? DataFolder.default.appending(path: "todos", directoryHint: .isDirectory)
    let todoList = TodoList(store: FileStore(folder: folder))
    try await reportCorruption(of: todoList)
    let screen = LiveTodo(todoList: todoList, liveSubscriptions: liveSubscriptions)
    return CommandStatus(await ScreenSession(of: screen, on: terminal).run(), console: console)
  }

  private func playScript() async throws(TodoListError) {
    let store: any KeyValueStore = dataFolder.map { FileStore(folder: $0) } ?? InMemoryStore()
    let todoList = TodoList(store: store)
    let model = TodoListViewModel(todoList: todoList, print: { [console] line in console.print(line) })
    let script = TodoScript(
      model: model, todoList: todoList, console: console, liveSubscriptions: liveSubscriptions)
    try await reportCorruption(of: todoList)
    let modelTask = Task { await model.run() }
    let result: Result<Void, TodoListError>
    do throws(TodoListError) {
      result = .success(try await play(script))
    } catch {
      result = .failure(error)
    }
    // Waits, so that the view model has stopped when this method returns.
    modelTask.cancel()
    await modelTask.value
    try result.get()
  }

  /// Reports a stored list that was corrupt, which the store has quarantined.
  ///
  /// Throws if the list is left untouched, because every change of it would fail.
  private func reportCorruption(of todoList: TodoList) async throws(TodoListError) {
    do throws(TodoListError) {
      _ = try await todoList.fetchItems()
    } catch {
      guard case .store(.undecodable(_, movedTo: _?, _)) = error else { throw error }
      console.error("moments: \(error)")
    }
  }

  private func play(_ script: TodoScript) async throws(TodoListError) {
    try await script.show()
    if !script.model.isAddEnabled {
      console.print("")
      console.print("Add is disabled: \(TodoItems.unfinishedLimit) todos are unfinished. Clearing the list.")
      await script.model.clear()
      try await script.show()
    }
    try await script.add("Buy milk")
    try await script.add("写周报")
    try await script.cancelAdding("Never mind")
    try await script.edit("Buy milk", to: "Buy milk and bread")
    try await script.toggle("写周报")
  }
}
