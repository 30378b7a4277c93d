internal import DataStore
internal import Multicast
public import Observation

/// The model of a todo list screen.
///
/// Await ``run()`` in the view's task. The call doesn't keep the model alive, and ends when the model is released.
/// Releasing the model also releases ``detail``, unless the view still holds it.
@MainActor
@Observable
public final class TodoListViewModel {
  private var list = TodoItems()

  /// Whether the stored list has been loaded, which distinguishes an empty list from an unknown one.
  public private(set) var isLoaded = false
  /// The model of the open screen that adds or edits an item; `nil` if no screen is open.
  public private(set) var detail: TodoDetailViewModel?
  /// The last error of an edit, or of loading or observing the list; `nil` once an edit begins or a screen opens.
  public private(set) var error: TodoListError?

  @ObservationIgnored private let todoList: TodoList
  @ObservationIgnored private let print: @MainActor (String) -> Void
  /// The number of detail screens opened so far, which identifies the open one.
  @ObservationIgnored private var openedDetailCount = 0
  /// The number of changes shown so far, by which a read of the list detects that its result is outdated.
  @ObservationIgnored private var shownChangeCount = 0
  /// The events that have been reported.
  ///
  /// A new subscriber receives the last events again, which must not be reported twice.
  @ObservationIgnored private var reportedEvents: Set<StoreEvent> = []
  @ObservationIgnored private let currentSubscription = CurrentSubscription<StoreChange<TodoItems>>()

  /// Creates the model of a list.
  ///
  /// - Parameters:
  ///   - todoList: The list. Share one among all screens.
  ///   - print: A closure that prints a line. For each detail screen, the line is "Finish adding a new todo." or
  ///     "Finish editing a todo.". It is printed after the screen's stream has finished and the item, if any, is stored
  ///     or couldn't be stored. If storing the item fails after the model was released, the error is printed first.
  public init(todoList: TodoList, print: @escaping @MainActor (String) -> Void = { _ in }) {
    self.todoList = todoList
    self.print = print
  }

  // MARK: Outputs

  /// The items, in the order in which they were added.
  public var items: [TodoItem] { list.elements }

  /// The title of the screen; see ``TodoItems/title``.
  public var title: String { list.title }

  /// Whether Add is enabled, which is the case while fewer than five items are unfinished.
  public var isAddEnabled: Bool { list.canAdd }

  /// Whether Clear is enabled, which is the case unless the list is empty.
  public var isClearEnabled: Bool { list.canClear }

  // MARK: Inputs

  /// Opens a screen that adds an item, and closes the screen that was open before, if any.
  ///
  /// The item that the screen sends is added even if ``run()`` isn't awaited.
  ///
  /// - Returns: The model of the screen, which is also ``detail``; `nil` while ``isAddEnabled`` is `false`.
  @discardableResult
  public func openAdd() -> TodoDetailViewModel? {
    guard isAddEnabled else { return nil }
    return open(TodoDetailViewModel(), finalLine: "Finish adding a new todo.") {
      todoList, item throws(TodoListError) in
      try await todoList.add(item)
    }
  }

  /// Opens a screen that edits an item, and closes the screen that was open before, if any.
  ///
  /// The item that the screen sends replaces the stored item with the same id, even if the stored item's position has
  /// changed. If the stored item was deleted meanwhile, ``error`` is set.
  ///
  /// - Returns: The model of the screen, which is also ``detail``; `nil` if there is no such item.
  @discardableResult
  public func openEdit(id: TodoItem.ID) -> TodoDetailViewModel? {
    guard let item = list[id] else { return nil }
    return open(TodoDetailViewModel(editing: item), finalLine: "Finish editing a todo.") {
      todoList, item throws(TodoListError) in
      try await todoList.update(item)
    }
  }

  /// Toggles whether an item is finished.
  ///
  /// Sets ``error`` on failure, also if the item was deleted meanwhile. The changed list arrives through ``run()``.
  public func toggle(id: TodoItem.ID) async {
    await perform { todoList throws(TodoListError) in try await todoList.toggle(id: id) }
  }

  /// Deletes an item.
  ///
  /// Sets ``error`` on failure. The changed list arrives through ``run()``.
  public func delete(id: TodoItem.ID) async {
    await perform { todoList throws(TodoListError) in try await todoList.delete(id: id) }
  }

  /// Deletes all items.
  ///
  /// Sets ``error`` on failure. The changed list arrives through ``run()``.
  public func clear() async {
    await perform { todoList throws(TodoListError) in try await todoList.clear() }
  }

  /// Observes the list until the calling task is cancelled or the model is released.
  ///
  /// Sets ``error`` and returns if the stored list can't be read. If its bytes are corrupt, the store quarantines them,
  /// ``error`` has their new location, and the list continues empty. If another version of the program stores a list
  /// that this one can't decode, ``error`` says so, and the list stays as it is. A later call ends this one.
  public consuming func run() async {
    let todoList = todoList
    let subscriber = WeakSubscriber(consume self)
    do throws(TodoListError) {
      let events = todoList.events.subscribe()
      let changes = try await todoList.changes().buffering(.latest).subscribe()
      let stored = try await todoList.fetchItems()
      // The call returns `nil` if the model was released meanwhile.
      guard subscriber.object?.show(stored, with: changes) != nil else { return }
      async let _: Void = Self.report(events, of: todoList, to: subscriber)
      await subscriber.receive(changes) { model, change in
        model.list = change.stored?.value ?? TodoItems()
        model.shownChangeCount += 1
      }
    } catch {
      subscriber.object?.error = error
    }
  }

  /// Reports stored lists that can't be decoded, and loads the list again after each quarantine.
  private static func report(
    _ events: MulticastSubscription<StoreEvent, Never>, of todoList: TodoList,
    to subscriber: WeakSubscriber<TodoListViewModel>
  ) async {
    for await event in events {
      guard subscriber.object?.report(event) == true,
        let countBefore = subscriber.object?.shownChangeCount
      else { continue }
      do throws(TodoListError) {
        let stored = try await todoList.fetchItems()
        // If a change was shown meanwhile, it may be newer than the fetched list. A change that isn't shown yet will
        // replace the fetched list when it arrives.
        if let model = subscriber.object, model.shownChangeCount == countBefore { model.list = stored }
      } catch {
        subscriber.object?.error = error
      }
    }
  }

  /// Shows the stored list, and replaces the current subscription, which ends an earlier call of ``run()``.
  private func show(_ stored: TodoItems, with changes: MulticastSubscription<StoreChange<TodoItems>, Never>) {
    currentSubscription.replace(with: changes)
    list = stored
    isLoaded = true
  }

  /// Reports a list that can't be decoded, once per event.
  ///
  /// - Returns: Whether a list was quarantined, which means that the displayed list is outdated.
  private func report(_ event: StoreEvent) -> Bool {
    let (place, reason): (String?, String)
    switch event {
    case .valueQuarantined(TodoList.key.keyName, let movedTo, let quarantineReason):
      (place, reason) = (movedTo, quarantineReason)
    case .undecodableValueLeftUntouched(TodoList.key.keyName, let decodingReason):
      (place, reason) = (nil, decodingReason)
    default: return false
    }
    guard reportedEvents.insert(event).inserted else { return false }
    error = .store(.undecodable(TodoList.key.keyName, movedTo: place, reason: reason))
    return place != nil
  }

  private func perform(_ edit: (TodoList) async throws(TodoListError) -> Void) async {
    error = nil
    do throws(TodoListError) {
      try await edit(todoList)
    } catch {
      self.error = error
    }
  }

  /// Shows a detail screen, and stores the item that it sends.
  ///
  /// The subscription is registered before the method returns. Only the task that reads from the subscription holds it,
  /// so the task and the subscription are released when the detail's channel finishes. The task holds neither view
  /// model. It holds the `TodoList`, which stores the item.
  private func open(
    _ detail: TodoDetailViewModel, finalLine: String,
    storeItem: @escaping @Sendable (TodoList, TodoItem) async throws(TodoListError) -> Void
  ) -> TodoDetailViewModel {
    self.detail?.cancel()
    self.detail = detail
    error = nil
    openedDetailCount += 1
    let detailNumber = openedDetailCount
    let subscription = detail.todo.subscribe()
    Task { [weak self, todoList, print] in
      for await item in subscription {
        do throws(TodoListError) {
          try await storeItem(todoList, item)
        } catch {
          if let self { self.error = error } else { print(error.description) }
        }
      }
      self?.closeDetail(number: detailNumber)
      print(finalLine)
    }
    return detail
  }

  private func closeDetail(number: Int) {
    if number == openedDetailCount { detail = nil }
  }
}
