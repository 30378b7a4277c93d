import DataStore
import Todo

/// The code of `Todo.md`, copied unchanged so that the compiler checks it.
enum TodoExamples {
  static func firstExample(print: @escaping Print) async throws {
    let list = TodoList(store: InMemoryStore())
    try await list.add(TodoItem(name: "Buy milk"))
    for item in try await list.fetchItems().elements { print(item.name) }
  }
}
