internal import TerminalUI
internal import Todo

/// The part of the live todo list's state that isn't in its view models, such as the selection and the activity.
///
/// A pure state machine: its inputs are keys, events and the values of the view models, and its outputs are requests
/// and the contents of the screen.
struct LiveTodoState {
  /// An action that a key requests from the view models or the ``ScreenSession``.
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

  /// An edit of the list that needs no form.
  enum Edit: Equatable {
    case toggle(TodoItem)
    case delete(TodoItem)
    case clear
  }

  /// The values that the view model of the list shows.
  struct List {
    var title = ""
    var items: [TodoItem] = []
    var isLoaded = true
    var isAddEnabled = true
    var isClearEnabled = true
    var error: TodoListError?
  }

  /// The values that the form of an open todo shows.
  struct Form {
    var title = ""
    var name = ""
    var isFinished = false
    var isDoneEnabled = false
    /// The number of live subscriptions in the process, which the form shows as "Resource tracing".
    var liveSubscriptions = 0
  }

  /// The description of the latest activity.
  private(set) var activity = ""
  private var selection = ListSelection<TodoItem.ID>()
  /// Whether the open form adds a todo.
  private var isAdding = false
  /// The failure that is no longer shown, because ``show(_:in:)`` has shown a text in its place.
  private var hiddenError: TodoListError?
  /// Whether the next key confirms or cancels clearing the list.
  private var asksToClear = false

  // MARK: Events

  /// Shows a line that the view model of the list prints.
  mutating func print(_ text: String) {
    activity = text
  }

  /// Shows that an edit has completed.
  mutating func completed(_ edit: Edit) {
    activity =
      switch edit {
      // The item is as it was before the edit.
      case .toggle(let item): "\(item.isFinished ? "Not finished" : "Finished"): \(item.name)"
      case .delete(let item): "Deleted: \(item.name)"
      case .clear: "All todos are deleted."
      }
  }

  /// Shows that the todo of the form could not be saved.
  mutating func saveFailed(_ name: String) {
    activity = "Not saved: \(name)"
  }

  /// Shows a text as the activity, in place of the list's failure if there is one.
  private mutating func show(_ text: String, in list: List) {
    activity = text
    hiddenError = list.error
  }

  // MARK: Keys

  /// Handles a key, and returns the request of the key; `nil` if there is no request.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - list: The list.
  ///   - form: The open form; `nil` if none is open.
  ///   - pageHeight: The number of rows that a page key moves by.
  mutating func press(_ key: Key, in list: List, _ form: Form?, pageHeight: Int = 10) -> Request? {
    let request = if let form { press(key, inForm: form, list) } else { press(key, inList: list, pageHeight) }
    switch request {
    // A failure of an edit or of Done is shown even if it equals the hidden one. After Cancel, which can't fail, the
    // list's failure is shown again if it was hidden.
    case .edit, .done, .cancel: hiddenError = nil
    default: break
    }
    return request
  }

  private mutating func press(_ key: Key, inList list: List, _ pageHeight: Int) -> Request? {
    let ids = list.items.map(\.id)
    selection.anchor(in: ids)
    if asksToClear {
      asksToClear = false
      if key == .character("y") { return .edit(.clear) }
      show("Nothing was cleared.", in: list)
      return nil
    }
    let selected = selectedItem(in: list)
    // Checked before the selection handles the key, which would move it by a page.
    if key == .character(" ") { return selected.map { .edit(.toggle($0)) } }
    if selection.press(key, in: ids, pageHeight: pageHeight) { return nil }
    switch key {
    case .character("a"):
      isAdding = list.isAddEnabled
      if isAdding { return .openAdd }
      show("Add is disabled: \(TodoItems.unfinishedLimit) todos are unfinished.", in: list)
    case .character("e"), .enter:
      isAdding = false
      return selected.map { .openEdit($0.id) }
    case .character("x"): return selected.map { .edit(.toggle($0)) }
    case .character("d"): return selected.map { .edit(.delete($0)) }
    case .character("c") where list.isClearEnabled:
      asksToClear = true
      // The key that confirms isn't `c`, so that holding down `c` deletes nothing.
      show("Delete all of \(list.title)? Press y to delete, or any other key to cancel.", in: list)
    case .character("q"): return .quit
    default: break
    }
    return nil
  }

  private mutating func press(_ key: Key, inForm form: Form, _ list: List) -> Request? {
    if let name = TextField.text(form.name, after: key) { return .setName(name) }
    switch key {
    case .tab: return .toggleFinished
    case .enter where form.isDoneEnabled:
      if isAdding { selection.selectLast() }
      return .done
    case .enter: show("A todo needs a name.", in: list)
    case .escape: return .cancel
    default: break
    }
    return nil
  }

  private func selectedItem(in list: List) -> TodoItem? {
    let index = selection.index(in: list.items.map(\.id))
    return list.items.indices.contains(index) ? list.items[index] : nil
  }

  // MARK: Contents

  func model(of list: List, _ form: Form?) -> TodoScreen.Model {
    TodoScreen.Model(
      title: list.title, isLoaded: list.isLoaded, canAdd: list.isAddEnabled,
      rows: list.items.map { TodoScreen.Model.Row(name: $0.name, isFinished: $0.isFinished) },
      selection: selection.index(in: list.items.map(\.id)),
      form: form.map {
        TodoScreen.Model.Form(
          title: $0.title, name: $0.name, isFinished: $0.isFinished, liveSubscriptions: $0.liveSubscriptions)
      },
      problem: list.error == hiddenError ? nil : list.error?.description, activity: activity,
      keys: form.map(keys) ?? keys(in: list))
  }

  private func keys(in list: List) -> [KeyHint] {
    var keys = [KeyHint(key: "q", action: "quit")]
    if list.isAddEnabled { keys.append(KeyHint(key: "a", action: "add")) }
    if let selected = selectedItem(in: list) {
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
    return keys + [KeyHint(key: "tab", action: "toggle finished"), KeyHint(key: "^U", action: "clear the name")]
  }
}
