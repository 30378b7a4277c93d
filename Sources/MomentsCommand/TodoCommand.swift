internal import DataStore
internal import Foundation
internal import Multicast
internal import TerminalUI
internal import Todo

/// `moments todo`: a list of things to do, live in a terminal; elsewhere adds, edits and finishes todos as a person would,
/// and prints what the screen shows.
@MainActor
struct TodoCommand {
  /// Where the list is kept; nil for the user's own folder in a terminal, and for memory elsewhere.
  let dataFolder: URL?
  let console: Console
  /// Where to show it live; nil to print it line by line.
  let terminal: (any TerminalType)?
  /// Counts what is alive, for the line that the lecture prints whenever a detail opens.
  let liveSubscriptions: @MainActor () -> Int

  init(
    dataFolder: URL?, console: Console, terminal: (any TerminalType)? = nil,
    liveSubscriptions: @escaping @MainActor () -> Int = { MulticastDiagnostics.liveSubscriptions }
  ) {
    self.dataFolder = dataFolder
    // The names of todos are what another program may have written into the folder.
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
    try await reportUndecodable(todoList)
    let screen = LiveTodo(todoList: todoList, liveSubscriptions: liveSubscriptions)
    return CommandStatus(await ScreenSession(of: screen, on: terminal).run(), console: console)
  }

  private func playScript() async throws(TodoListError) {
    let store: any KeyValueStore = dataFolder.map { FileStore(folder: $0) } ?? InMemoryStore()
    let todoList = TodoList(store: store)
    let model = TodoListViewModel(todoList: todoList, print: { [console] line in console.print(line) })
    let script = TodoScript(
      model: model, todoList: todoList, console: console, liveSubscriptions: liveSubscriptions)
    try await reportUndecodable(todoList)
    let running = Task { await model.run() }
    let result: Result<Void, TodoListError>
    do throws(TodoListError) {
      result = .success(try await play(script))
    } catch {
      result = .failure(error)
    }
    // Nothing of the session is at work when this returns.
    running.cancel()
    await running.value
    try result.get()
  }

  /// Reports a stored list that could not be decoded, which the store has quarantined.
  private func reportUndecodable(_ todoList: TodoList) async throws(TodoListError) {
    do throws(TodoListError) {
      _ = try await todoList.fetchItems()
    } catch {
      guard case .store(.undecodable) = error else { throw error }
      console.error("moments: \(error)")
    }
  }

  private func play(_ script: TodoScript) async throws(TodoListError) {
    try await script.show()
    if !script.model.isAddEnabled {
      console.print("")
      console.print("Add is disabled: \(TodoItems.unfinishedLimit) todos are unfinished. Clear")
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
