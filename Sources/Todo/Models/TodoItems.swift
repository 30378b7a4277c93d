public import Foundation

/// The items of a todo list, in the order in which they were added.
///
/// The ids of the items are unique; decoding fails if they aren't.
public struct TodoItems: Sendable, Hashable {
  /// The number of unfinished items below which ``canAdd`` is `true`.
  public static let unfinishedLimit = 5

  /// The items, in the order in which they were added.
  public private(set) var elements: [TodoItem] = []

  /// Creates an empty list.
  public init() {}

  /// Whether a screen lets the user add an item, which is the case while fewer than ``unfinishedLimit`` items are
  /// unfinished.
  ///
  /// ``TodoList/add(_:)`` doesn't check this.
  ///
  /// - Complexity: O(*n*), where *n* is the number of items.
  public var canAdd: Bool { elements.count { !$0.isFinished } < Self.unfinishedLimit }

  /// Whether the list can be cleared, which is the case unless it is empty.
  public var canClear: Bool { !elements.isEmpty }

  /// The title of the list: "Todo" if it is empty, and the number of items otherwise, such as "1 ToDos" or "2 ToDos".
  public var title: String { elements.isEmpty ? "Todo" : "\(elements.count) ToDos" }

  /// The item with an id; `nil` if there is no such item.
  ///
  /// - Complexity: O(*n*), where *n* is the number of items.
  public subscript(id: TodoItem.ID) -> TodoItem? {
    index(of: id).map { elements[$0] }
  }

  /// Appends an item, or replaces the item with the same id if there is one.
  mutating func add(_ item: TodoItem) {
    if !update(item) { elements.append(item) }
  }

  /// Replaces the item with the same id.
  ///
  /// - Returns: Whether there is such an item.
  mutating func update(_ item: TodoItem) -> Bool {
    guard let index = index(of: item.id) else { return false }
    elements[index] = item
    return true
  }

  /// Toggles whether an item is finished.
  ///
  /// - Returns: Whether there is an item with this id.
  mutating func toggle(_ id: TodoItem.ID) -> Bool {
    guard let index = index(of: id) else { return false }
    elements[index].isFinished.toggle()
    return true
  }

  mutating func delete(_ id: TodoItem.ID) {
    elements.removeAll { $0.id == id }
  }

  mutating func clear() {
    elements = []
  }

  private func index(of id: TodoItem.ID) -> Int? {
    elements.firstIndex { $0.id == id }
  }
}

extension TodoItems: Codable {
  /// Creates a list from an array of items.
  ///
  /// - Throws: A `DecodingError`, also if two items have the same id.
  public init(from decoder: any Decoder) throws {
    elements = try decoder.singleValueContainer().decode([TodoItem].self)
    guard Set(elements.map(\.id)).count == elements.count else {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "Two items have the same id."))
    }
  }

  /// Encodes the items as an array.
  ///
  /// - Throws: The error of the encoder.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(elements)
  }
}
