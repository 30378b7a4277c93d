internal import DataStore
internal import MulticastTesting
internal import Todo

/// The steps of a scripted session on the todo screens.
///
/// Each step ends when the list shows the stored items.
@MainActor
struct TodoScript {
  let model: TodoListViewModel
  let todoList: TodoList
  let console: Console
  let liveSubscriptions: @MainActor () -> Int

  /// Prints the list as soon as it shows the stored items.
  func show() async throws(TodoListError) {
    try await model.waitUntilStoredItemsShow(of: todoList) { failure != nil }
    if let failure { throw failure }
    console.print(model.title)
    for item in model.items { console.print("\(item.isFinished ? "✓" : "·") \(item.name)") }
  }

  /// The failure that ends the session.
  ///
  /// Bytes that were quarantined don't end the session.
  private var failure: TodoListError? {
    if case .store(.undecodable(_, movedTo: _?, _)) = model.error { nil } else { model.error }
  }

  func add(_ name: String) async throws(TodoListError) {
    guard let detail = reportOpening(of: model.openAdd(), as: name) else { return }
    detail.name = name
    detail.done()
    try await showAfterClosing()
  }

  func cancelAdding(_ name: String) async throws(TodoListError) {
    guard let detail = reportOpening(of: model.openAdd(), as: "\(name), cancelled") else { return }
    detail.name = name
    detail.cancel()
    try await showAfterClosing()
  }

  func edit(_ name: String, to newName: String) async throws(TodoListError) {
    guard let item = model.items.last(where: { $0.name == name }) else { return }
    guard let detail = reportOpening(of: model.openEdit(id: item.id), as: "\(name) → \(newName)") else { return }
    detail.name = newName
    detail.done()
    try await showAfterClosing()
  }

  func toggle(_ name: String) async throws(TodoListError) {
    guard let item = model.items.last(where: { $0.name == name }) else { return }
    console.print("")
    console.print("Toggle: \(name)")
    await model.toggle(id: item.id)
    try await show()
  }

  /// Prints that a detail opened, or that Add is disabled if there is no detail.
  ///
  /// An edit always has a detail, because the caller has just found its item. The format is that of the RxSwift app
  /// that this command replaces.
  private func reportOpening(of detail: TodoDetailViewModel?, as change: String) -> TodoDetailViewModel? {
    console.print("")
    guard let detail else {
      console.print("Add is disabled: \(TodoItems.unfinishedLimit) todos are unfinished.")
      return nil
    }
    console.print("\(detail.title): \(change)")
    console.print("Resource tracing: \(liveSubscriptions())")
    return detail
  }

  private func showAfterClosing() async throws(TodoListError) {
    await until { model.detail == nil }
    try await show()
  }
}
