import DataStore
import Foundation
import Multicast
import TestSupport
import Testing
import Todo

@Suite(.timeLimit(.minutes(15))) struct TodoListTests {
  private let milk = TodoItem(name: "买牛奶")
  private let report = TodoItem(name: "写周报")

  @Test func `Edits are stored, and a relaunch reads them`() async throws {
    let storage = InMemoryStorage()
    let list = TodoList(store: InMemoryStore(storage: storage))
    #expect(try await list.fetchItems().elements == [])
    try await list.add(milk)
    try await list.add(report)
    try await list.toggle(id: report.id)
    try await list.update(TodoItem(id: milk.id, name: "买牛奶和面包"))
    let expected = [
      TodoItem(id: milk.id, name: "买牛奶和面包"), TodoItem(id: report.id, name: "写周报", isFinished: true),
    ]
    #expect(try await list.fetchItems().elements == expected)
    let listAfterRelaunch = TodoList(store: InMemoryStore(storage: storage))
    #expect(try await listAfterRelaunch.fetchItems().elements == expected)
    try await listAfterRelaunch.delete(id: milk.id)
    #expect(try await listAfterRelaunch.fetchItems().elements == [expected[1]])
    try await listAfterRelaunch.clear()
    #expect(try await TodoList(store: InMemoryStore(storage: storage)).fetchItems().elements == [])
  }

  @Test func `Observers receive the stored list first, then each of its changes once, in order`() async throws {
    let store = InMemoryStore()
    let list = TodoList(store: store)
    try await list.add(milk)
    var changes = try await list.changes().makeAsyncIterator()
    #expect(await changes.next()?.stored?.value.elements == [milk])
    try await list.add(report)
    // These two calls change nothing, so no change is observed.
    try await list.delete(id: UUID())
    _ = try await list.fetchItems()
    try await list.clear()
    // The list is empty already, so this call changes nothing either.
    try await list.clear()
    try await list.add(report)
    #expect(await changes.next()?.stored?.value.elements == [milk, report])
    #expect(await changes.next()?.stored?.value.elements == [])
    #expect(await changes.next()?.stored?.value.elements == [report])
  }

  @Test func `None of many concurrent edits is lost`() async throws {
    let list = TodoList(store: InMemoryStore())
    let items = (0..<100).map { TodoItem(name: "\($0)") }
    try await withThrowingTaskGroup { group in
      for item in items { group.addTask { try await list.add(item) } }
      try await group.waitForAll()
    }
    #expect(Set(try await list.fetchItems().elements) == Set(items))
  }

  @Test func `No edit of two lists on one store is lost`() async throws {
    let store = InMemoryStore()
    let lists = [TodoList(store: store), TodoList(store: store)]
    let items = (0..<40).map { TodoItem(name: "\($0)") }
    try await withThrowingTaskGroup { group in
      for (index, item) in items.enumerated() { group.addTask { try await lists[index % 2].add(item) } }
      try await group.waitForAll()
    }
    let storedItems = try await lists[0].fetchItems()
    #expect(storedItems.elements.count == 40)
    #expect(Set(storedItems.elements) == Set(items))
    #expect(try await lists[1].fetchItems() == storedItems)
  }

  @Test func `An edit that changes nothing stores nothing`() async throws {
    let store = InMemoryStore()
    let list = TodoList(store: store)
    try await list.delete(id: milk.id)
    try await list.clear()
    await #expect(throws: TodoListError.noSuchItem(milk.id)) { try await list.toggle(id: milk.id) }
    #expect(try await store.load(TodoList.key) == nil)
  }

  @Test func `An item that isn't in the list can't be changed`() async throws {
    let list = TodoList(store: InMemoryStore())
    await #expect(throws: TodoListError.noSuchItem(milk.id)) { try await list.update(milk) }
    await #expect(throws: TodoListError.noSuchItem(milk.id)) { try await list.toggle(id: milk.id) }
    #expect(TodoListError.noSuchItem(milk.id).localizedDescription.hasPrefix("The todo is no longer in the list."))
    #expect(try await list.fetchItems().elements == [])
  }

  @Test func `A corrupt value is reported once and quarantined, and the list is empty afterwards`() async throws {
    let storage = InMemoryStorage()
    let encodedKey = try TodoList.key.keyName.encoded()
    storage[encodedKey] = Data("no list".utf8)
    let list = TodoList(store: InMemoryStore(storage: storage))
    let error = try await #require(throws: TodoListError.self) { try await list.add(milk) }
    guard case .store(.undecodable(_, let movedTo?, _)) = error else {
      Issue.record("Unexpected error \(error)")
      return
    }
    #expect(storage[movedTo] == Data("no list".utf8))
    try await list.add(milk)
    #expect(try await list.fetchItems().elements == [milk])
  }

  @Test func `A list of another version that this one can't decode is left untouched, and every edit throws`()
    async throws
  {
    let storage = InMemoryStorage()
    try await InMemoryStore(storage: storage).save(7, for: StoreKey<Int>(TodoList.key.keyName))
    let bytes = storage[try TodoList.key.keyName.encoded()]
    let list = TodoList(store: InMemoryStore(storage: storage))
    for _ in 1...2 {
      let error = try await #require(throws: TodoListError.self) { try await list.add(milk) }
      guard case .store(.undecodable(_, movedTo: nil, _)) = error else {
        Issue.record("Unexpected error \(error)")
        return
      }
    }
    #expect(storage.names.map { storage[$0] } == [bytes])
  }

  @Test func `If the store can't be written, an edit throws, and the list is unchanged`() async throws {
    let diskFullError = StoreError.writeFailed(SystemError(code: 28, operation: "write", path: "/store"))
    let isDiskFull = Lock(false)
    let list = TodoList(
      store: InterposedStore(beforeSaving: { _ throws(StoreError) in
        if isDiskFull.withLock({ $0 }) { throw diskFullError }
      }))
    try await list.add(milk)
    isDiskFull.withLock { $0 = true }
    await #expect(throws: TodoListError.store(diskFullError)) { try await list.add(TodoItem(name: "bread")) }
    await #expect(throws: TodoListError.store(diskFullError)) { try await list.toggle(id: milk.id) }
    await #expect(throws: TodoListError.store(diskFullError)) { try await list.clear() }
    #expect(try await list.fetchItems().elements == [milk])
    #expect(TodoListError.store(diskFullError).description == diskFullError.description)
  }

  @Test func `An edit completes, even if its caller is cancelled`() async throws {
    let list = TodoList(store: InMemoryStore())
    let caller = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await list.add(milk)
    }
    try await caller.value
    #expect(try await list.fetchItems().elements == [milk])
  }
}
