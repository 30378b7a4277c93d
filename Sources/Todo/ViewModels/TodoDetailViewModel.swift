internal import Foundation
public import Multicast
public import Observation

/// The model of a screen that adds or edits a todo.
///
/// The stream ``todo`` delivers the result: Done sends one item and finishes the stream, and Cancel finishes it without
/// an item. Nothing is replayed, so subscribe before the screen appears.
///
/// Only the screen can send. Subscribers have a `MulticastStream`, which has no `send` and no `finish`, and the
/// underlying channel is private.
@MainActor
@Observable
public final class TodoDetailViewModel {
  /// The title of the screen: "Add Todo" or "Edit todo".
  public let title: String
  /// The content of the name field.
  public var name: String
  /// Whether the item is marked as finished.
  public var isFinished: Bool

  @ObservationIgnored private let id: TodoItem.ID
  @ObservationIgnored private let todoChannel = MulticastChannel<TodoItem, Never>(buffering: .unbounded)

  /// Creates the model of a screen.
  ///
  /// - Parameter item: The item to edit; `nil` to add an item.
  public init(editing item: TodoItem? = nil) {
    title = item == nil ? "Add Todo" : "Edit todo"
    let item = item ?? TodoItem()
    id = item.id
    name = item.name
    isFinished = item.isFinished
  }

  /// The stream of the result: the added or edited item, if any, then the completion.
  ///
  /// The stream finishes with Done, with Cancel, and when the model is released.
  public var todo: MulticastStream<TodoItem, Never> { todoChannel.stream }

  /// Whether Done is enabled, which is the case if the name isn't empty.
  public var isDoneEnabled: Bool { !name.isEmpty }

  /// Sends the item, and finishes the stream.
  ///
  /// Does nothing while ``isDoneEnabled`` is `false`, and nothing after the stream has finished.
  public func done() {
    guard isDoneEnabled else { return }
    todoChannel.send(TodoItem(id: id, name: name, isFinished: isFinished))
    todoChannel.finish()
  }

  /// Finishes the stream without an item.
  ///
  /// Does nothing after the stream has finished.
  public func cancel() {
    todoChannel.finish()
  }
}
