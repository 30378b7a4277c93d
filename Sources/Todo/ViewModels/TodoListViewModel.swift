internal import DataStore
internal import Multicast
public import Observation

/// The screen with the list of things to do.
///
/// Await ``run()`` from the view's task. Nothing keeps the model alive: if it is dropped while its loop runs, it is
/// released, the loop ends, and so does the detail it had opened.
@MainActor
@Observable
public final class TodoListViewModel {
  private var list = TodoItems()

  /// Whether the list shows what is stored, so that an empty one is known to be empty.
  public private(set) var isLoaded = false
  /// The screen that adds or edits an item while it is open, which is a model of its own; nil while none is.
  public private(set) var detail: TodoDetailViewModel?
  /// Why the last call failed, or the list could not be loaded; nil from the start of the next call on.
  public private(set) var error: TodoListError?

  @ObservationIgnored private let todoList: TodoList
  @ObservationIgnored private let print: @MainActor (String) -> Void
  @ObservationIgnored private var openings = 0
  @ObservationIgnored private var shownChanges = 0
  @ObservationIgnored private var reported: Set<StoreEvent> = []
  @ObservationIgnored private var following: MulticastSubscription<StoreChange<TodoItems>, Never>?

  /// Creates the model of a list.
  ///
  /// - Parameters:
  ///   - todoList: The list. Share one among all screens.
  ///   - print: Where "Finish adding a new todo." and "Finish editing a todo." go: once for each detail, when its
  ///     channel has ended and its item, if any, is kept.
  public init(todoList: TodoList, print: @escaping @MainActor (String) -> Void = { _ in }) {
    self.todoList = todoList
    self.print = print
  }

  deinit {
    following?.cancel()
  }

  // MARK: Outputs

  /// The items, in the order they were added.
  public var items: [TodoItem] { list.elements }

  /// "Todo" for an empty list, else how many items there are: "1 ToDos", "2 ToDos".
  public var title: String { list.title }

  /// Whether Add can be pressed: while fewer than five items are unfinished.
  public var isAddEnabled: Bool { list.canAdd }

  /// Whether Clear can be pressed: while there is any item.
  public var isClearEnabled: Bool { list.canClear }

  // MARK: Inputs

  /// Opens the screen that adds an item, and closes the one that was open.
  ///
  /// What it sends is added, whether or not ``run()`` follows the list.
  ///
  /// - Returns: The screen, which is ``detail`` too; nil while ``isAddEnabled`` is false.
  @discardableResult
  public func openAdd() -> TodoDetailViewModel? {
    guard isAddEnabled else { return nil }
    return open(TodoDetailViewModel(), finishing: "Finish adding a new todo.") { list, item throws(TodoListError) in
      try await list.add(item)
    }
  }

  /// Opens the screen that edits an item, and closes the one that was open.
  ///
  /// What it sends takes the place of the item with the same id, wherever that is by then; where it was deleted
  /// meanwhile, ``error`` says so.
  ///
  /// - Returns: The screen, which is ``detail`` too; nil where there is no such item.
  @discardableResult
  public func openEdit(id: TodoItem.ID) -> TodoDetailViewModel? {
    guard let item = list[id] else { return nil }
    return open(TodoDetailViewModel(editing: item), finishing: "Finish editing a todo.") {
      list, item throws(TodoListError) in
      try await list.update(item)
    }
  }

  /// Finishes an item, or begins it again.
  public func toggle(id: TodoItem.ID) async {
    await perform { list throws(TodoListError) in try await list.toggle(id: id) }
  }

  /// Deletes an item.
  public func delete(id: TodoItem.ID) async {
    await perform { list throws(TodoListError) in try await list.delete(id: id) }
  }

  /// Deletes all items.
  public func clear() async {
    await perform { list throws(TodoListError) in try await list.clear() }
  }

  /// Shows the list until the calling task is cancelled, the store ends or the model is released.
  ///
  /// Where the stored list cannot be read, ``error`` says why. Bytes that can't be decoded are quarantined, ``error``
  /// says where, and the list goes on empty.
  public consuming func run() async {
    let todoList = todoList
    let subscriber = WeakSubscriber(copy self)
    // Consumed, so that what waits from here on doesn't keep the model.
    _ = consume self
    do throws(TodoListError) {
      let events = todoList.events.subscribe()
      let changes = try await todoList.changes().buffering(.latest).subscribe()
      let stored = try await todoList.fetchItems()
      guard subscriber.object?.show(stored, following: changes) != nil else { return }
      async let _: Void = Self.report(events, of: todoList, to: subscriber)
      await subscriber.receive(changes) { model, change in
        model.list = change.stored?.value ?? TodoItems()
        model.shownChanges += 1
      }
    } catch {
      subscriber.object?.error = error
    }
  }

  /// Reports stored lists that can't be decoded, and shows what is stored after each.
  private static func report(
    _ events: MulticastSubscription<StoreEvent, Never>, of todoList: TodoList,
    to subscriber: WeakSubscriber<TodoListViewModel>
  ) async {
    for await event in events {
      guard subscriber.object?.report(event) == true, let shown = subscriber.object?.shownChanges else { continue }
      do throws(TodoListError) {
        let stored = try await todoList.fetchItems()
        // A change that was shown meanwhile may be newer, and one that isn't shown yet arrives as the next change.
        if let model = subscriber.object, model.shownChanges == shown { model.list = stored }
      } catch {
        subscriber.object?.error = error
      }
    }
  }

  private func show(_ stored: TodoItems, following changes: MulticastSubscription<StoreChange<TodoItems>, Never>) {
    following?.cancel()
    following = changes
    list = stored
    isLoaded = true
  }

  /// Reports a list that could not be decoded, once, whichever call met it first.
  ///
  /// - Returns: Whether it was new, so that the list isn't what is shown.
  private func report(_ event: StoreEvent) -> Bool {
    guard case .valueQuarantined(TodoList.key.keyName, let movedTo, let reason) = event,
      reported.insert(event).inserted
    else { return false }
    error = .store(.undecodable(TodoList.key.keyName, movedTo: movedTo, reason: reason))
    return true
  }

  private func perform(_ edit: (TodoList) async throws(TodoListError) -> Void) async {
    error = nil
    do throws(TodoListError) {
      try await edit(todoList)
    } catch {
      self.error = error
    }
  }

  /// Shows a detail and keeps what it sends.
  ///
  /// The subscription is in force when this returns, and is held by nothing but the task that reads it: the end of the
  /// detail's channel ends the task and frees both. The task holds the list to keep the item in, but neither model.
  private func open(
    _ detail: TodoDetailViewModel, finishing line: String,
    keep: @escaping @Sendable (TodoList, TodoItem) async throws(TodoListError) -> Void
  ) -> TodoDetailViewModel {
    self.detail?.cancel()
    self.detail = detail
    error = nil
    openings += 1
    let opening = openings
    let todo = detail.todo.subscribe()
    Task { [weak self, todoList, print] in
      for await item in todo {
        do throws(TodoListError) {
          try await keep(todoList, item)
        } catch {
          if let self { self.error = error } else { print(error.description) }
        }
      }
      self?.close(opening)
      print(line)
    }
    return detail
  }

  private func close(_ opening: Int) {
    if opening == openings { detail = nil }
  }
}
