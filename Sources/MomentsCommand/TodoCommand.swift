internal import DataStore
internal import Foundation
internal import Multicast
internal import Todo

/// `moments todo`: adds, edits and finishes todos as a person would, and prints what the screen shows.
@MainActor
struct TodoCommand {
  /// Where the list is kept; nil for memory.
  let dataFolder: URL?
  let console: Console
  /// Counts what is alive, for the line that the lecture prints whenever a detail opens.
  var liveSubscriptions: @MainActor () -> Int = { MulticastDiagnostics.liveSubscriptions }

  func run() async -> CommandStatus {
    let store: any KeyValueStore = dataFolder.map { FileStore(folder: $0) } ?? InMemoryStore()
    let todoList = TodoList(store: store)
    let model = TodoListViewModel(todoList: todoList, print: { [console] line in console.print(line) })
    let script = TodoScript(
      model: model, todoList: todoList, console: console, liveSubscriptions: liveSubscriptions)
    let status: CommandStatus
    var running: Task<Void, Never>?
    do throws(TodoListError) {
      try await reportUndecodable(todoList)
      running = Task { await model.run() }
      try await play(script)
      status = .success
    } catch {
      console.error("moments: \(error)")
      status = .inputOutput
    }
    // Nothing of the session is at work when this returns.
    running?.cancel()
    await running?.value
    return status
  }

  /// Tells of a stored list that could not be decoded; the store has moved it aside.
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
      console.print("\nAdd is disabled: \(TodoItems.unfinishedLimit) todos are unfinished. Clear")
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
