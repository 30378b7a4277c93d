internal import Foundation
public import Multicast
public import Observation

/// The screen on which a todo is added or edited.
///
/// What comes of it leaves by ``todo``: Done sends one item, then the end; Cancel sends the end only. Nothing is
/// replayed, so subscribe before the screen shows.
///
/// Only the screen sends. Readers have a `MulticastStream`, which has no `send` and no `finish`, and the channel behind
/// it is private: to send from outside does not compile.
@MainActor
@Observable
public final class TodoDetailViewModel {
  /// "Add Todo" or "Edit todo".
  public let title: String
  /// What is typed as the name.
  public var name: String
  /// What is chosen for the item: finished or not.
  public var isFinished: Bool

  @ObservationIgnored private let id: TodoItem.ID
  @ObservationIgnored private let todoChannel = MulticastChannel<TodoItem, Never>(buffering: .unbounded)

  /// Creates the screen for an item.
  ///
  /// - Parameter item: What to edit; nil to add one.
  public init(editing item: TodoItem? = nil) {
    title = item == nil ? "Add Todo" : "Edit todo"
    let item = item ?? TodoItem()
    id = item.id
    name = item.name
    isFinished = item.isFinished
  }

  /// The item that was added or edited, if any, then the end.
  ///
  /// The end comes with Done and with Cancel, and also where the screen is just dropped.
  public var todo: MulticastStream<TodoItem, Never> { todoChannel.stream }

  /// Whether Done can be pressed: when there is a name.
  public var isDoneEnabled: Bool { !name.isEmpty }

  /// Sends the item, then the end.
  ///
  /// Does nothing while ``isDoneEnabled`` is false, and nothing after the end.
  public func done() {
    guard isDoneEnabled else { return }
    todoChannel.send(TodoItem(id: id, name: name, isFinished: isFinished))
    todoChannel.finish()
  }

  /// Sends the end only.
  ///
  /// Does nothing after the end.
  public func cancel() {
    todoChannel.finish()
  }
}
