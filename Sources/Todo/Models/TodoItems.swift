public import Foundation

/// A list of things to do, in the order they were added, with the rules that hold for it.
///
/// No two elements have the same id; stored bytes in which two do are refused.
public struct TodoItems: Sendable, Hashable {
  /// With so many unfinished items no other may be begun.
  public static let unfinishedLimit = 5

  /// The items.
  public private(set) var elements: [TodoItem] = []

  /// Creates an empty list.
  public init() {}

  /// Whether another item may be begun: while fewer than ``unfinishedLimit`` are unfinished.
  public var canAdd: Bool { elements.count { !$0.isFinished } < Self.unfinishedLimit }

  /// Whether there is anything to clear.
  public var canClear: Bool { !elements.isEmpty }

  /// "Todo" for an empty list, else how many items there are: "1 ToDos", "2 ToDos".
  public var title: String { elements.isEmpty ? "Todo" : "\(elements.count) ToDos" }

  /// The item with this id; `nil` if there is no such item.
  public subscript(id: TodoItem.ID) -> TodoItem? {
    index(of: id).map { elements[$0] }
  }

  /// Puts an item at the end; or in the place of the one with its id, so that to add again adds nothing.
  mutating func add(_ item: TodoItem) {
    if !update(item) { elements.append(item) }
  }

  /// Puts an item in the place of the one with its id.
  ///
  /// - Returns: Whether there is one.
  mutating func update(_ item: TodoItem) -> Bool {
    guard let index = index(of: item.id) else { return false }
    elements[index] = item
    return true
  }

  /// Finishes an item, or begins it again.
  ///
  /// - Returns: Whether there is one.
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
  /// Reads a list.
  ///
  /// - Throws: A `DecodingError`, also where two items have the same id.
  public init(from decoder: any Decoder) throws {
    elements = try decoder.singleValueContainer().decode([TodoItem].self)
    guard Set(elements.map(\.id)).count == elements.count else {
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: decoder.codingPath, debugDescription: "Two items have the same id."))
    }
  }

  /// Writes the items, as a plain array.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(elements)
  }
}
