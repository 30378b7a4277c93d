internal import DataStore

/// One of many similar elements of a large value.
struct Item: Codable, Equatable, Sendable {
  var id: Int
  var title: String
  var note: String
  var author: String
  var place: String
  var link: String
  var state: String
  var isDone: Bool

  init(id: Int) {
    self.id = id
    title = "Item \(id)"
    note = "Bring the second key, as the first one is with the neighbours until the end of the week. Number \(id)."
    author = "Author \(id % 13)"
    place = "Room \(id % 41)"
    link = "https://items.example.com/lists/\(id % 29)/items/\(id)"
    state = "open"
    isDone = false
  }

  /// Returns the element after a change.
  func changed(in step: Int) -> Item {
    var item = self
    item.isDone.toggle()
    item.state = "changed in step \(step)"
    return item
  }
}

/// A large value whose elements change one at a time.
protocol ItemList: Codable, Equatable, Sendable {
  init(items: [Item])
  var items: [Item] { get set }
}

/// A list that a store keeps as one JSON text.
struct WholeItemList: ItemList {
  var owner = "user-0"
  var items: [Item]

  init(items: [Item]) { self.items = items }
}

/// A list that a store keeps in parts.
struct PartitionedItemList: ItemList, PartitionedValue {
  var owner = "user-0"
  var items: [Item]

  init(items: [Item]) { self.items = items }

  init(head: String, elements: [Item]) { (owner, items) = (head, elements) }
  var head: String { owner }
  var elements: [Item] { items }
}
