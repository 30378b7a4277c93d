internal import MulticastTesting
internal import Observation
internal import TerminalUI
internal import Todo

/// The live todo list, which connects the view models of the list and of its detail with a terminal.
@MainActor
@Observable
final class LiveTodo: LiveScreen {
  /// Shares the state with the view model of the list, which prints lines to it.
  @MainActor
  @Observable
  final class StateHolder {
    var state = LiveTodoState()
  }

  private let todoList: TodoList
  private let model: TodoListViewModel
  private let liveSubscriptions: @MainActor () -> Int
  private let holder: StateHolder

  /// Creates the live list.
  ///
  /// - Parameters:
  ///   - todoList: The list.
  ///   - liveSubscriptions: Returns the number of live subscriptions, which the open form shows as "Resource tracing".
  init(todoList: TodoList, liveSubscriptions: @escaping @MainActor () -> Int) {
    let holder = StateHolder()
    self.holder = holder
    self.todoList = todoList
    self.liveSubscriptions = liveSubscriptions
    model = TodoListViewModel(todoList: todoList, print: { holder.state.print($0) })
  }

  func run() async {
    await model.run()
  }

  func press(_ key: Key, size: TerminalSize) -> KeyResponse? {
    let pageHeight = ListAndDetail.pageHeight(of: size)
    switch holder.state.press(key, in: list, form, pageHeight: pageHeight) {
    case .openAdd: model.openAdd()
    case .openEdit(let id): model.openEdit(id: id)
    case .edit(let edit): return response(performing: edit)
    case .setName(let name): model.detail?.name = name
    case .toggleFinished: model.detail?.isFinished.toggle()
    case .done: return closeForm(isDone: true)
    case .cancel: return closeForm(isDone: false)
    case .quit: return .quit
    case nil: break
    }
    return nil
  }

  func frame(size: TerminalSize) -> Frame? {
    TodoScreen.frame(of: holder.state.model(of: list, form), size: size)
  }

  private var list: LiveTodoState.List {
    LiveTodoState.List(
      title: model.title, items: model.items, isLoaded: model.isLoaded, isAddEnabled: model.isAddEnabled,
      isClearEnabled: model.isClearEnabled, error: model.error)
  }

  private var form: LiveTodoState.Form? {
    model.detail.map { detail in
      LiveTodoState.Form(
        title: detail.title, name: detail.name, isFinished: detail.isFinished, isDoneEnabled: detail.isDoneEnabled,
        liveSubscriptions: liveSubscriptions())
    }
  }

  // MARK: Changes

  /// Ends the form with Done or Cancel, and returns an action that waits until the form is closed.
  ///
  /// If `isDone`, the action then waits until the list shows the stored todo, or reports that the todo wasn't saved.
  private func closeForm(isDone: Bool) -> KeyResponse? {
    guard let detail = model.detail else { return nil }
    if isDone { detail.done() } else { detail.cancel() }
    return .performFirst {
      // Waits in an unstructured task, which a quit doesn't cancel, so the todo is stored before the session ends.
      await Task { await until { self.model.detail !== detail } }.value
      guard isDone else { return }
      if self.model.error == nil {
        await self.waitUntilStoredItemsShow()
      } else {
        self.holder.state.saveFailed(detail.name)
      }
    }
  }

  /// Returns an action that performs an edit and, unless the edit fails, shows that it has completed.
  private func response(performing edit: LiveTodoState.Edit) -> KeyResponse {
    .performFirst {
      switch edit {
      case .toggle(let item): await self.model.toggle(id: item.id)
      case .delete(let item): await self.model.delete(id: item.id)
      case .clear: await self.model.clear()
      }
      guard self.model.error == nil else { return }
      await self.waitUntilStoredItemsShow()
      self.holder.state.completed(edit)
    }
  }

  /// Waits until the list shows the stored items, because the next keys refer to the items that it shows.
  private func waitUntilStoredItemsShow() async {
    // A list that could not be read would never show them.
    guard model.isLoaded else { return }
    do throws(TodoListError) {
      try await model.waitUntilStoredItemsShow(of: todoList)
    } catch {
      // The edit succeeded, but the list couldn't be read afterwards. If that persists, the next edit reports it.
    }
  }
}
