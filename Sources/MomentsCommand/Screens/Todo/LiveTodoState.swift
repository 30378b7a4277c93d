internal import TerminalUI
internal import Todo

/// What the list of things to do on a terminal knows beside its view models: where the user is, and what happened last.
///
/// Pure: keys and lists go in; what is to be done and what is to be shown come out.
struct LiveTodoState {
  /// What a key asks for beyond the screen.
  enum Request: Equatable {
    case openAdd
    case openEdit(TodoItem.ID)
    case edit(Edit)
    case setName(String)
    case toggleFinished
    case done
    case cancel
    case quit
  }

  /// A change of the list.
  enum Edit: Equatable {
    case toggle(TodoItem)
    case delete(TodoItem)
    case clear
  }

  /// What the view model of the list shows.
  struct List {
    var title = ""
    var items: [TodoItem] = []
    var isLoaded = true
    var isAddEnabled = true
    var isClearEnabled = true
    var error: TodoListError?
  }

  /// What the view model of an open todo shows.
  struct Form {
    var title = ""
    var name = ""
    var isFinished = false
    var isDoneEnabled = false
    /// The number of observers that are alive.
    var liveSubscriptions = 0
  }

  /// What happened last.
  private(set) var activity = ""
  private var selection = ListSelection<TodoItem.ID>()
  /// Whether the form, while it is open, adds a todo.
  private var isAdding = false
  /// The failure after which something else was said.
  private var earlierError: TodoListError?
  /// Whether the next key may clear the list.
  private var isClearing = false

  // MARK: What happens

  /// Says what the view model prints.
  mutating func print(_ text: String) {
    activity = text
  }

  /// Says that a change is made and shown.
  mutating func made(_ edit: Edit) {
    activity =
      switch edit {
      case .toggle(let item): "\(item.isFinished ? "Not finished" : "Finished"): \(item.name)"
      case .delete(let item): "Deleted: \(item.name)"
      case .clear: "All todos are deleted."
      }
  }

  /// Says that what the form sent could not be kept.
  mutating func failedToKeep(_ name: String) {
    activity = "Not kept: \(name)"
  }

  /// Says something, also in the place of a failure before it.
  private mutating func say(_ text: String, in list: List) {
    activity = text
    earlierError = list.error
  }

  // MARK: Keys

  /// Moves, or says what the key asks for; `nil` for a key without a meaning.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - list: The list.
  ///   - form: The open todo; `nil` if none is.
  ///   - pageHeight: How many rows a page key moves.
  mutating func press(_ key: Key, in list: List, _ form: Form?, pageHeight: Int = 10) -> Request? {
    let request = form.map { press(key, in: $0, list) } ?? press(key, in: list, pageHeight)
    switch request {
    // What it brings is told anew.
    case .edit, .done, .cancel: earlierError = nil
    default: break
    }
    return request
  }

  private mutating func press(_ key: Key, in list: List, _ pageHeight: Int) -> Request? {
    let ids = list.items.map(\.id)
    selection.anchor(in: ids)
    if isClearing {
      isClearing = false
      if key == .character("y") { return .edit(.clear) }
      say("Nothing was cleared.", in: list)
      return nil
    }
    let selected = selected(in: list)
    if key == .character(" ") { return selected.map { .edit(.toggle($0)) } }
    if selection.press(key, in: ids, pageHeight: pageHeight) { return nil }
    switch key {
    case .character("a"):
      isAdding = list.isAddEnabled
      if isAdding { return .openAdd }
      say("Add is disabled: \(TodoItems.unfinishedLimit) todos are unfinished.", in: list)
    case .character("e"), .enter:
      isAdding = false
      return selected.map { .openEdit($0.id) }
    case .character("x"): return selected.map { .edit(.toggle($0)) }
    case .character("d"): return selected.map { .edit(.delete($0)) }
    case .character("c") where list.isClearEnabled:
      isClearing = true
      // Another key than this one, so that to hold it deletes nothing.
      say("Delete all of \(list.title)? y deletes them, any other key does not.", in: list)
    case .character("q"): return .quit
    default: break
    }
    return nil
  }

  private mutating func press(_ key: Key, in form: Form, _ list: List) -> Request? {
    if let name = TextField.text(form.name, after: key) { return .setName(name) }
    switch key {
    case .tab: return .toggleFinished
    case .enter where form.isDoneEnabled:
      if isAdding { selection.selectLast() }
      return .done
    case .enter: say("A todo has a name.", in: list)
    case .escape: return .cancel
    default: break
    }
    return nil
  }

  private func selected(in list: List) -> TodoItem? {
    let index = selection.index(in: list.items.map(\.id))
    return list.items.indices.contains(index) ? list.items[index] : nil
  }

  // MARK: What to show

  func model(of list: List, _ form: Form?) -> TodoScreen.Model {
    TodoScreen.Model(
      title: list.title, isLoaded: list.isLoaded, canAdd: list.isAddEnabled,
      rows: list.items.map { TodoScreen.Model.Row(name: $0.name, isFinished: $0.isFinished) },
      selection: selection.index(in: list.items.map(\.id)),
      form: form.map {
        TodoScreen.Model.Form(
          title: $0.title, name: $0.name, isFinished: $0.isFinished, liveSubscriptions: $0.liveSubscriptions)
      },
      problem: list.error == earlierError ? nil : list.error?.description, activity: activity,
      keys: form.map(keys) ?? keys(in: list))
  }

  private func keys(in list: List) -> [KeyHint] {
    var keys = [KeyHint(key: "q", action: "quit")]
    if list.isAddEnabled { keys.append(KeyHint(key: "a", action: "add")) }
    if let selected = selected(in: list) {
      keys += [
        .move, KeyHint(key: "x", action: selected.isFinished ? "unfinish" : "finish"),
        KeyHint(key: "e", action: "edit"), KeyHint(key: "d", action: "delete"), KeyHint(key: "c", action: "clear"),
      ]
    }
    return keys
  }

  private func keys(of form: Form) -> [KeyHint] {
    var keys = [KeyHint(key: "esc", action: "cancel")]
    if form.isDoneEnabled { keys.append(KeyHint(key: "enter", action: "done")) }
    return keys + [KeyHint(key: "tab", action: "finished or not"), KeyHint(key: "^U", action: "empty the name")]
  }
}
