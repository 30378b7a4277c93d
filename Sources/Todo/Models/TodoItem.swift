public import Foundation

/// An item of a todo list.
public struct TodoItem: Sendable, Hashable, Codable, Identifiable {
  /// The identifier of the item, which doesn't change when the item is edited or moved.
  public let id: UUID
  /// The name of the item.
  public var name: String
  /// Whether the item is finished.
  public var isFinished: Bool

  /// Creates an item; by default, it has no name and is unfinished.
  public init(id: UUID = UUID(), name: String = "", isFinished: Bool = false) {
    self.id = id
    self.name = name
    self.isFinished = isFinished
  }
}
