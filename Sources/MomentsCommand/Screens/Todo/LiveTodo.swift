internal import Observation
internal import TerminalUI
internal import Todo

/// The list of things to do on a terminal: the view models of the list and of its detail, and the keys.
@MainActor
@Observable
final class LiveTodo: LiveScreen {
  /// Holds the state, which the view model of the list writes to as well.
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
  ///   - liveSubscriptions: Counts the observers that are alive, for the line the lecture prints whenever a detail opens.
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
    let pageHeight = ListSelection<TodoItem.ID>.pageHeight(of: size)
    switch holder.state.press(key, in: list, form, pageHeight: pageHeight) {
    case .openAdd: model.openAdd()
    case .openEdit(let id): model.openEdit(id: id)
    case .edit(let edit): return make(edit)
    case .setName(let name): model.detail?.name = name
    case .toggleFinished: model.detail?.isFinished.toggle()
    case .done: return leave(isDone: true)
    case .cancel: return leave(isDone: false)
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

  /// Closes the form, and waits until it is closed, and what it sent is kept and shown.
  private func leave(isDone: Bool) -> KeyResponse? {
    guard let detail = model.detail else { return nil }
    if isDone { detail.done() } else { detail.cancel() }
    return .performFirst {
      // In a task of its own, as the item is kept also where the user quits.
      await Task { await until { self.model.detail !== detail } }.value
      guard isDone else { return }
      if self.model.error == nil { await self.showStored() } else { self.holder.state.failedToKeep(detail.name) }
    }
  }

  /// Makes a change, and says what was done, unless it could not be.
  private func make(_ edit: LiveTodoState.Edit) -> KeyResponse {
    .performFirst {
      switch edit {
      case .toggle(let item): await self.model.toggle(id: item.id)
      case .delete(let item): await self.model.delete(id: item.id)
      case .clear: await self.model.clear()
      }
      guard self.model.error == nil else { return }
      await self.showStored()
      self.holder.state.made(edit)
    }
  }

  /// Waits until the list shows what is stored: the keys that follow mean what is seen.
  private func showStored() async {
    // Nothing is shown where the list could not be read.
    guard model.isLoaded else { return }
    do throws(TodoListError) {
      try await model.showsStored(of: todoList)
    } catch {
      // The edit is made. The list reports by itself that it can't be read any more.
    }
  }
}
