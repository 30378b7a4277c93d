internal import DataStore
internal import Multicast
internal import Observation
internal import Todo

extension TodoListViewModel {
  /// Waits until the list shows what is stored, also where another process edits it meanwhile; or until `isOver`, or the
  /// calling task is cancelled.
  func showsStored(of todoList: TodoList, or isOver: @escaping @MainActor () -> Bool = { false })
    async throws(TodoListError)
  {
    let changes = try await todoList.changes().buffering(.latest).subscribe()
    let stored = StoredTodos(try await todoList.fetchItems())
    // The first of them is as new as what was fetched: a store publishes a change before a call returns it.
    let following = Task {
      for await change in changes { stored.items = change.stored?.value ?? TodoItems() }
    }
    await until { (self.isLoaded && self.items == stored.items.elements) || isOver() }
    following.cancel()
    await following.value
  }
}

/// What is stored now.
@MainActor
@Observable
private final class StoredTodos {
  var items: TodoItems

  init(_ items: TodoItems) {
    self.items = items
  }
}
