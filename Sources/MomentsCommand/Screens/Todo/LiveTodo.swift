internal import Observation
internal import Todo

/// The list of things to do on a terminal: the view models of the list and of its detail, and the keys.
@MainActor
@Observable
final class LiveTodo: LiveScreen {
  /// What happened last, and how many details have come to their end: their items, if any, are kept.
  @MainActor
  @Observable
  final class Activity {
    var text = ""
    fileprivate(set) var endedDetails = 0
  }

  private let model: TodoListViewModel
  private let liveSubscriptions: @MainActor () -> Int
  private let activity: Activity

  private var selection = ListSelection<TodoItem.ID>()
  /// The detail that the user has left, which is open until its item is kept.
  private var leftDetail: TodoDetailViewModel?
  private var leftDetails = 0
  /// Whether the form, while it is open, adds a todo.
  private var isAdding = false
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
    self.liveSubscriptions = liveSubscriptions
    model = TodoListViewModel(
      todoList: todoList,
      print: { line in
        activity.text = line
        activity.endedDetails += 1
      })
  }

  func run() async {
    await model.run()
  }

  // MARK: Keys

  func press(_ key: Key, size: TerminalSize) -> KeyResponse? {
    if let detail { return press(key, in: detail) }
    selection.settle(in: ids)
    if isClearing {
      isClearing = false
      if key == .character("c") { return .perform { await self.clear() } }
      activity.text = "Nothing was cleared."
      return nil
    }
    if key == .character(" ") { return toggle() }
    if selection.press(key, in: ids, pageHeight: ListSelection<TodoItem.ID>.pageHeight(of: size)) { return nil }
    switch key {
    case .character("a"):
      isAdding = model.openAdd() != nil
      if !isAdding {
        activity.text = "Add is disabled: \(TodoItems.unfinishedLimit) todos are unfinished."
      }
    case .character("e"), .enter:
      isAdding = false
      if let selected { model.openEdit(id: selected.id) }
    case .character("x"): return toggle()
    case .character("d"):
      guard let selected else { return nil }
      return .perform { await self.delete(selected) }
    case .character("c") where model.isClearEnabled:
      isClearing = true
      activity.text = "Delete all of \(model.title)? c deletes them, any other key does not."
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
      return leave(detail)
    case .enter: activity.text = "A todo has a name."
    case .escape:
      detail.cancel()
      return leave(detail)
    default: break
    }
    return nil
  }

  /// The form is closed at once, so that the keys behind are the list's; what it sent is kept also where the user quits.
  private func leave(_ detail: TodoDetailViewModel) -> KeyResponse {
    leftDetail = detail
    leftDetails += 1
    let leftDetails = leftDetails
    return .perform { [self, activity] in
      // In a task of its own, as a cancellation of this one must not end it.
      await Task { await until { activity.endedDetails >= leftDetails } }.value
      if self.leftDetail === detail { self.leftDetail = nil }
    }
  }

  private func toggle() -> KeyResponse? {
    guard let selected else { return nil }
    return .perform {
      await self.model.toggle(id: selected.id)
      self.tell("\(selected.isFinished ? "Not finished" : "Finished"): \(selected.name)")
    }
  }

  private func delete(_ item: TodoItem) async {
    await model.delete(id: item.id)
    tell("Deleted: \(item.name)")
  }

  private func clear() async {
    await model.clear()
    tell("All todos are deleted.")
  }

  /// Says what was done, unless it could not be.
  private func tell(_ text: String) {
    if model.error == nil { activity.text = text }
  }

  // MARK: Picture

  private var detail: TodoDetailViewModel? {
    model.detail === leftDetail ? nil : model.detail
  }

  private var ids: [TodoItem.ID] { model.items.map(\.id) }

  private var selected: TodoItem? {
    let index = selection.index(in: ids)
    return model.items.indices.contains(index) ? model.items[index] : nil
  }

  func frame(size: TerminalSize) -> Frame? {
    let form = detail.map { detail in
      TodoScreen.Model.Form(
        title: detail.title, name: detail.name, isFinished: detail.isFinished,
        liveSubscriptions: liveSubscriptions())
    }
    return TodoScreen.frame(
      of: TodoScreen.Model(
        title: model.title, isLoaded: model.isLoaded, canAdd: model.isAddEnabled,
        rows: model.items.map { TodoScreen.Model.Row(name: $0.name, isFinished: $0.isFinished) },
        selection: selection.index(in: ids), form: form, problem: model.error?.description,
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
    if detail?.isDoneEnabled == true { keys.append(KeyHint(key: "enter", action: "done")) }
    return keys + [KeyHint(key: "tab", action: "finished or not"), KeyHint(key: "^U", action: "empty the name")]
  }
}
