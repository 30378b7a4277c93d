internal import DataStore
internal import Multicast
internal import MulticastTesting
internal import Observation
internal import Todo

extension TodoListViewModel {
  /// Waits until the list shows the stored items, even if another process edits them meanwhile.
  ///
  /// Returns early if `shouldStop` returns `true` or the calling task is cancelled.
  func waitUntilStoredItemsShow(of todoList: TodoList, or shouldStop: @escaping @MainActor () -> Bool = { false })
    async throws(TodoListError)
  {
    let changes = try await todoList.changes().buffering(.latest).subscribe()
    let stored = StoredTodos(try await todoList.fetchItems())
    // The first change that the loop receives is at least as new as the fetched items, because a store publishes a
    // change before any call returns the new value.
    let observation = Task {
      for await change in changes { stored.items = change.stored?.value ?? TodoItems() }
    }
    await until { (self.isLoaded && self.items == stored.items.elements) || shouldStop() }
    observation.cancel()
    await observation.value
  }
}

/// The stored items.
@MainActor
@Observable
private final class StoredTodos {
  var items: TodoItems

  init(_ items: TodoItems) {
    self.items = items
  }
}
