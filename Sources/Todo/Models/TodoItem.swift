public import Foundation

/// Something to do.
public struct TodoItem: Sendable, Hashable, Codable, Identifiable {
  /// Stays the same whatever is edited, and wherever in a list the item is.
  public let id: UUID
  /// What is to be done.
  public var name: String
  /// Whether it is done.
  public var isFinished: Bool

  /// Creates an item: without a name, and not finished, by default.
  public init(id: UUID = UUID(), name: String = "", isFinished: Bool = false) {
    self.id = id
    self.name = name
    self.isFinished = isFinished
  }
}
