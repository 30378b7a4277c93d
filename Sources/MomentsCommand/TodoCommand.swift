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
    do throws(TodoListError) {
      try await reportUndecodable(todoList)
      let running = Task { await model.run() }
      defer { running.cancel() }
      try await play(TodoScript(model: model, todoList: todoList, command: self))
      return .success
    } catch {
      console.error("moments: \(error)")
      return .inputOutput
    }
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

/// What a person does on the screens, a step at a time; each step ends when the list shows what is stored.
@MainActor
struct TodoScript {
  let model: TodoListViewModel
  let todoList: TodoList
  let command: TodoCommand

  /// Prints the list, as soon as it shows what is stored.
  func show() async throws(TodoListError) {
    let stored = try await todoList.fetchItems()
    await until { (model.isLoaded && model.items == stored.elements) || model.error != nil }
    if let error = model.error { throw error }
    command.console.print(model.title)
    for item in model.items { command.console.print("\(item.isFinished ? "✓" : "·") \(item.name)") }
  }

  func add(_ name: String) async throws(TodoListError) {
    guard let detail = open(model.openAdd(), name) else { return }
    detail.name = name
    detail.done()
    try await finish()
  }

  func cancelAdding(_ name: String) async throws(TodoListError) {
    guard let detail = open(model.openAdd(), "\(name), cancelled") else { return }
    detail.name = name
    detail.cancel()
    try await finish()
  }

  func edit(_ name: String, to newName: String) async throws(TodoListError) {
    guard let item = model.items.last(where: { $0.name == name }) else { return }
    guard let detail = open(model.openEdit(id: item.id), "\(name) → \(newName)") else { return }
    detail.name = newName
    detail.done()
    try await finish()
  }

  func toggle(_ name: String) async throws(TodoListError) {
    guard let item = model.items.last(where: { $0.name == name }) else { return }
    command.console.print("\nToggle: \(name)")
    await model.toggle(id: item.id)
    try await show()
  }

  /// Tells that a detail opened, in the words of the lecture; or that it cannot.
  private func open(_ detail: TodoDetailViewModel?, _ name: String) -> TodoDetailViewModel? {
    guard let detail else {
      command.console.print("\nAdd is disabled: \(TodoItems.unfinishedLimit) todos are unfinished.")
      return nil
    }
    command.console.print("\n\(detail.title): \(name)")
    command.console.print("Resource tracing: \(command.liveSubscriptions())")
    return detail
  }

  private func finish() async throws(TodoListError) {
    await until { model.detail == nil }
    try await show()
  }
}
