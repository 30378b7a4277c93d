internal import Observation
internal import TerminalUI
internal import Todo

/// The list of things to do on a terminal: the view models of the list and of its detail, and the keys.
@MainActor
@Observable
final class LiveTodo: LiveScreen {
  /// What happened last.
  @MainActor
  @Observable
  final class Activity {
    var text = ""
  }

  private let todoList: TodoList
  private let model: TodoListViewModel
  private let liveSubscriptions: @MainActor () -> Int
  private let activity: Activity

  private var selection = ListSelection<TodoItem.ID>()
  /// Whether the form, while it is open, adds a todo.
  private var isAdding = false
  /// The failure after which something else was said.
  private var earlierError: TodoListError?
  /// Whether the next key may clear the list.
  private var isClearing = false

  /// Creates the live list.
  ///
  /// - Parameters:
  ///   - todoList: The list.
  ///   - liveSubscriptions: Counts the observers that are alive, for the line the lecture prints whenever a detail opens.
  init(todoList: TodoList, liveSubscriptions: @escaping @MainActor () -> Int) {
    let activity = Activity()
    self.activity = activity
    self.todoList = todoList
    self.liveSubscriptions = liveSubscriptions
    model = TodoListViewModel(
      todoList: todoList, print: { activity.text = $0 })
  }

  func run() async {
    await model.run()
  }

  // MARK: Keys

  func press(_ key: Key, size: TerminalSize) -> KeyResponse? {
    if let detail = model.detail { return press(key, in: detail) }
    selection.settle(in: ids)
    if isClearing {
      isClearing = false
      if key == .character("y") { return edit(saying: "All todos are deleted.") { model in await model.clear() } }
      say("Nothing was cleared.")
      return nil
    }
    if key == .character(" ") { return toggle() }
    if selection.press(key, in: ids, pageHeight: ListSelection<TodoItem.ID>.pageHeight(of: size)) { return nil }
    switch key {
    case .character("a"):
      isAdding = model.openAdd() != nil
      if !isAdding {
        say("Add is disabled: \(TodoItems.unfinishedLimit) todos are unfinished.")
      }
    case .character("e"), .enter:
      isAdding = false
      if let selected { model.openEdit(id: selected.id) }
    case .character("x"): return toggle()
    case .character("d"):
      guard let selected else { return nil }
      return edit(saying: "Deleted: \(selected.name)") { model in await model.delete(id: selected.id) }
    case .character("c") where model.isClearEnabled:
      isClearing = true
      // Another key than this one, so that to hold it deletes nothing.
      say("Delete all of \(model.title)? y deletes them, any other key does not.")
    case .character("q"): return .quit
    default: break
    }
    return nil
  }

  private func press(_ key: Key, in detail: TodoDetailViewModel) -> KeyResponse? {
    if let name = TextField.text(detail.name, after: key) {
      detail.name = name
      return nil
    }
    switch key {
    case .tab: detail.isFinished.toggle()
    case .enter where detail.isDoneEnabled:
      detail.done()
      if isAdding { selection.selectLast() }
      return leave(detail, isDone: true)
    case .enter: say("A todo has a name.")
    case .escape:
      detail.cancel()
      return leave(detail, isDone: false)
    default: break
    }
    return nil
  }

  /// Waits until the form is closed, and what it sent is kept and shown.
  private func leave(_ detail: TodoDetailViewModel, isDone: Bool) -> KeyResponse {
    earlierError = nil
    return .performFirst {
      // In a task of its own, as the item is kept also where the user quits.
      await Task { await until { self.model.detail !== detail } }.value
      guard isDone else { return }
      if self.model.error == nil { await self.showStored() } else { self.activity.text = "Not kept: \(detail.name)" }
    }
  }

  private func toggle() -> KeyResponse? {
    guard let selected else { return nil }
    return edit(saying: "\(selected.isFinished ? "Not finished" : "Finished"): \(selected.name)") { model in
      await model.toggle(id: selected.id)
    }
  }

  /// Makes an edit, and says what was done, unless it could not be.
  private func edit(
    saying text: String, _ edit: @escaping @MainActor @Sendable (TodoListViewModel) async -> Void
  ) -> KeyResponse {
    earlierError = nil
    return .performFirst {
      await edit(self.model)
      guard self.model.error == nil else { return }
      await self.showStored()
      self.activity.text = text
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

  /// Says something, also in the place of a failure before it.
  private func say(_ text: String) {
    activity.text = text
    earlierError = model.error
  }

  // MARK: Picture

  private var ids: [TodoItem.ID] { model.items.map(\.id) }

  private var selected: TodoItem? {
    let index = selection.index(in: ids)
    return model.items.indices.contains(index) ? model.items[index] : nil
  }

  func frame(size: TerminalSize) -> Frame? {
    let form = model.detail.map { detail in
      TodoScreen.Model.Form(
        title: detail.title, name: detail.name, isFinished: detail.isFinished,
        liveSubscriptions: liveSubscriptions())
    }
    let problem = model.error == earlierError ? nil : model.error?.description
    return TodoScreen.frame(
      of: TodoScreen.Model(
        title: model.title, isLoaded: model.isLoaded, canAdd: model.isAddEnabled,
        rows: model.items.map { TodoScreen.Model.Row(name: $0.name, isFinished: $0.isFinished) },
        selection: selection.index(in: ids), form: form, problem: problem,
        activity: activity.text, keys: form == nil ? listKeys : formKeys),
      size: size)
  }

  private var listKeys: [KeyHint] {
    var keys = [KeyHint(key: "q", action: "quit")]
    if model.isAddEnabled { keys.append(KeyHint(key: "a", action: "add")) }
    if let selected {
      keys += [
        .move, KeyHint(key: "x", action: selected.isFinished ? "unfinish" : "finish"),
        KeyHint(key: "e", action: "edit"), KeyHint(key: "d", action: "delete"), KeyHint(key: "c", action: "clear"),
      ]
    }
    return keys
  }

  private var formKeys: [KeyHint] {
    var keys = [KeyHint(key: "esc", action: "cancel")]
    if model.detail?.isDoneEnabled == true { keys.append(KeyHint(key: "enter", action: "done")) }
    return keys + [KeyHint(key: "tab", action: "finished or not"), KeyHint(key: "^U", action: "empty the name")]
  }
}
