import DataStore
import Foundation
import Multicast
import MulticastTesting
import Testing
import Todo

@MainActor
@Suite(.timeLimit(.minutes(15))) struct TodoListViewModelTests {
  /// A list, its running model, and the lines that the model has printed.
  @MainActor
  private final class Screen {
    let storage = InMemoryStorage()
    let list: TodoList
    private(set) var lines: [String] = []
    private(set) var model: TodoListViewModel!
    private var runTask: Task<Void, Never>?

    init(items: [TodoItem] = []) async throws {
      list = TodoList(store: InMemoryStore(storage: storage))
      for item in items { try await list.add(item) }
      model = TodoListViewModel(todoList: list) { [weak self] line in self?.lines.append(line) }
      runTask = Task { [model] in await model?.run() }
      await until { [model] in model?.isLoaded == true && model?.items == items }
    }

    /// Waits until the detail screen is closed and the model shows the stored list.
    func settle() async throws {
      await until { [model] in model?.detail == nil }
      let stored = try await list.fetchItems()
      await until { [model] in model?.items == stored.elements }
    }

    func close() async {
      runTask?.cancel()
      await runTask?.value
    }
  }

  private let milk = TodoItem(name: "买牛奶")
  private let report = TodoItem(name: "写周报")

  @Test func `The stored list is shown with its title and its buttons`() async throws {
    let emptyScreen = try await Screen()
    #expect(emptyScreen.model.title == "Todo")
    #expect(emptyScreen.model.isAddEnabled)
    #expect(!emptyScreen.model.isClearEnabled)
    let screen = try await Screen(items: [milk, report])
    #expect(screen.model.title == "2 ToDos")
    #expect(screen.model.isClearEnabled)
    await emptyScreen.close()
    await screen.close()
  }

  @Test func `Done adds the item and prints one line`() async throws {
    let screen = try await Screen()
    let detail = try #require(screen.model.openAdd())
    #expect(screen.model.detail === detail)
    detail.name = "买牛奶"
    detail.done()
    detail.done()
    try await screen.settle()
    #expect(screen.model.items.map(\.name) == ["买牛奶"])
    #expect(screen.model.title == "1 ToDos")
    #expect(screen.lines == ["Finish adding a new todo."])
    await screen.close()
  }

  @Test func `Cancel adds nothing and prints one line`() async throws {
    let screen = try await Screen()
    let detail = try #require(screen.model.openAdd())
    detail.name = "买牛奶"
    detail.cancel()
    try await screen.settle()
    #expect(screen.model.items == [])
    #expect(screen.lines == ["Finish adding a new todo."])
    await screen.close()
  }

  @Test func `Opening Add again discards the item of an Add screen that is still open`() async throws {
    let screen = try await Screen()
    let firstDetail = try #require(screen.model.openAdd())
    firstDetail.name = "买牛奶"
    firstDetail.done()
    try await screen.settle()
    let abandonedDetail = try #require(screen.model.openAdd())
    abandonedDetail.name = "写周报"
    let lastDetail = try #require(screen.model.openAdd())
    #expect(lastDetail.name == "")
    abandonedDetail.done()
    lastDetail.cancel()
    try await screen.settle()
    #expect(screen.model.items.map(\.name) == ["买牛奶"])
    #expect(screen.lines == Array(repeating: "Finish adding a new todo.", count: 3))
    await screen.close()
  }

  @Test func `An edit finds its item by id, even if the item's position has changed`() async throws {
    let screen = try await Screen(items: [milk, report])
    let detail = try #require(screen.model.openEdit(id: report.id))
    #expect(detail.title == "Edit todo")
    await screen.model.delete(id: milk.id)
    detail.name = "写月报"
    detail.isFinished = true
    detail.done()
    try await screen.settle()
    #expect(screen.model.items == [TodoItem(id: report.id, name: "写月报", isFinished: true)])
    #expect(screen.lines == ["Finish editing a todo."])
    await screen.close()
  }

  @Test func `An edit of an item that was deleted meanwhile sets the error and changes nothing`() async throws {
    let screen = try await Screen(items: [milk, report])
    let detail = try #require(screen.model.openEdit(id: report.id))
    await screen.model.delete(id: report.id)
    detail.done()
    try await screen.settle()
    #expect(screen.model.error == .noSuchItem(report.id))
    #expect(screen.model.items == [milk])
    #expect(screen.model.openEdit(id: report.id) == nil)
    await screen.model.toggle(id: milk.id)
    #expect(screen.model.error == nil)
    await screen.close()
  }

  @Test func `Add is disabled at five unfinished items, and enabled when one is finished or deleted`() async throws {
    let items = (1...5).map { TodoItem(name: "\($0)") }
    let screen = try await Screen(items: items)
    #expect(!screen.model.isAddEnabled)
    #expect(screen.model.openAdd() == nil)
    #expect(screen.model.detail == nil)
    await screen.model.toggle(id: items[0].id)
    try await screen.settle()
    #expect(screen.model.isAddEnabled)
    await screen.model.toggle(id: items[0].id)
    try await screen.settle()
    #expect(!screen.model.isAddEnabled)
    await screen.model.delete(id: items[4].id)
    try await screen.settle()
    #expect(screen.model.isAddEnabled)
    #expect(screen.model.items == Array(items.prefix(4)))
    await screen.model.clear()
    try await screen.settle()
    #expect(screen.model.title == "Todo")
    #expect(!screen.model.isClearEnabled)
    await screen.close()
  }

  @Test func `A corrupt value is reported and quarantined, and the screen continues with an empty list`() async throws {
    let storage = InMemoryStorage()
    storage[try TodoList.key.keyName.encoded()] = Data("no list".utf8)
    let model = TodoListViewModel(todoList: TodoList(store: InMemoryStore(storage: storage)))
    let runTask = Task { await model.run() }
    await until { model.error != nil }
    guard case .store(.undecodable(_, let movedTo?, _)) = model.error else {
      Issue.record("Unexpected error \(String(describing: model.error))")
      return
    }
    #expect(storage[movedTo] == Data("no list".utf8))
    let detail = try #require(model.openAdd())
    detail.name = "买牛奶"
    detail.done()
    await until { model.title == "1 ToDos" }
    runTask.cancel()
    await runTask.value
  }

  @Test func `A value that becomes corrupt while the model runs is reported, even if another caller reads it first`()
    async throws
  {
    let screen = try await Screen(items: [milk])
    screen.storage[try TodoList.key.keyName.encoded()] = Data("no list".utf8)
    let thrownError = try await #require(throws: TodoListError.self) { try await screen.list.fetchItems() }
    await until { screen.model.error != nil }
    #expect(screen.model.error == thrownError)
    // The stored list is empty now, and so is the shown one.
    await until { screen.model.items.isEmpty }
    await screen.close()
  }

  @Test func `A list that another version makes undecodable while the model runs is reported, and stays shown`()
    async throws
  {
    let screen = try await Screen(items: [milk])
    try await InMemoryStore(storage: screen.storage).save(7, for: StoreKey<Int>(TodoList.key.keyName))
    await until { screen.model.error != nil }
    guard case .store(.undecodable(_, movedTo: nil, _)) = screen.model.error else {
      Issue.record("Unexpected error \(String(describing: screen.model.error))")
      return
    }
    #expect(screen.model.items == [milk])
    await screen.close()
  }

  @Test func `A corrupt value is reported once, and not again when the model runs again`() async throws {
    let screen = try await Screen(items: [milk])
    screen.storage[try TodoList.key.keyName.encoded()] = Data("no list".utf8)
    await #expect(throws: TodoListError.self) { try await screen.list.fetchItems() }
    await until { screen.model.error != nil }
    let model = try #require(screen.model)
    await model.clear()
    #expect(model.error == nil)
    await screen.close()
    let runTask = Task { await model.run() }
    try await screen.list.add(report)
    await until { model.items == [report] }
    // A new subscription, such as that of the model's second run, receives the event again. The test waits until its
    // own subscription has received the event, then long enough for the model to handle it.
    let events = screen.list.events.subscribe()
    for await _ in events { break }
    for _ in 0..<100 { await Task.yield() }
    #expect(model.error == nil)
    runTask.cancel()
    await runTask.value
  }

  @Test func `A list that can't be read sets the error`() async {
    let folder = URL(filePath: "/dev/null/todo", directoryHint: .isDirectory)
    let model = TodoListViewModel(todoList: TodoList(store: FileStore(folder: folder)))
    await model.run()
    guard case .store(.readFailed) = model.error else {
      Issue.record("Unexpected error \(String(describing: model.error))")
      return
    }
  }

  @Test func `Two screens of one list agree`() async throws {
    let screen = try await Screen(items: [milk])
    let secondModel = TodoListViewModel(todoList: screen.list)
    let runTask = Task { await secondModel.run() }
    await until { secondModel.items.count == 1 }
    await secondModel.toggle(id: milk.id)
    await until { screen.model.items.first?.isFinished == true && secondModel.items.first?.isFinished == true }
    runTask.cancel()
    await runTask.value
    await screen.close()
  }

  @Test func `A model that is dropped while it observes the list is released with its detail model`() async throws {
    let list = TodoList(store: InMemoryStore())
    let printedLines = CurrentValueRelay<[String]>([])
    var model: TodoListViewModel? = TodoListViewModel(todoList: list) { line in
      printedLines.update { $0.append(line) }
    }
    weak let weakModel = model
    #expect(model?.isLoaded == false)
    // `run()` consumes its reference to the model, so the task doesn't keep the model alive.
    let runTask = Task { [weak model] in await model?.run() }
    try await list.add(milk)
    await until { weakModel?.items.count == 1 }
    weak let weakDetail = model?.openAdd()
    #expect(weakDetail != nil)
    model = nil
    #expect(weakModel == nil)
    #expect(weakDetail == nil)
    await runTask.value
    // The release of the detail model finishes its stream, after which the line is printed.
    for await lines in printedLines.stream where lines == ["Finish adding a new todo."] { break }
  }

  @Test func `An item that Done sends is stored, even if the model of the list is dropped immediately`() async throws {
    let list = TodoList(store: InMemoryStore())
    let printedLines = CurrentValueRelay<[String]>([])
    var model: TodoListViewModel? = TodoListViewModel(todoList: list) { line in
      printedLines.update { $0.append(line) }
    }
    let detail = try #require(model?.openAdd())
    detail.name = "买牛奶"
    detail.done()
    model = nil
    // The line is printed after the item is stored.
    for await lines in printedLines.stream where lines == ["Finish adding a new todo."] { break }
    #expect(try await list.fetchItems().elements.map(\.name) == ["买牛奶"])
  }

  @Test func `After a thousand rounds of detail screens, as many channels and subscriptions are alive as before`()
    async
  {
    // In a separate process, in which no other channels and subscriptions are alive.
    await #expect(processExitsWith: .success) {
      try await Self.openAndCloseDetailScreens()
    }
  }

  private static func openAndCloseDetailScreens() async throws {
    precondition(MulticastDiagnostics.liveChannels == 0)
    precondition(MulticastDiagnostics.liveSubscriptions == 0)
    var screen: Screen? = try await Screen(items: [TodoItem(name: "买牛奶")])
    let model = { screen!.model! }
    let channelCount = MulticastDiagnostics.liveChannels
    let subscriptionCount = MulticastDiagnostics.liveSubscriptions
    precondition(channelCount > 0)
    // The model subscribes to the events of the store and to the changes of the list.
    precondition(subscriptionCount == 2)
    for round in 0..<1000 {
      switch round % 4 {
      case 0: model().openAdd()?.cancel()
      case 1:
        let detail = model().openEdit(id: model().items[0].id)
        detail?.name = "\(round)"
        detail?.done()
      case 2:
        model().openAdd()
        model().openAdd()
        model().detail?.cancel()
      default:
        let detail = model().openAdd()
        precondition(MulticastDiagnostics.liveChannels == channelCount + 1)
        precondition(MulticastDiagnostics.liveSubscriptions == subscriptionCount + 1)
        // The name is empty, so `done()` does nothing.
        detail?.done()
        detail?.cancel()
      }
      try await screen?.settle()
    }
    // Each detail screen prints one line, and every fourth round opens two screens.
    precondition(screen?.lines.count == 1250)
    precondition(MulticastDiagnostics.liveChannels == channelCount)
    precondition(MulticastDiagnostics.liveSubscriptions == subscriptionCount)
    await screen?.close()
    screen = nil
    precondition(MulticastDiagnostics.liveSubscriptions == 0)
  }
}
