import Foundation
import Testing

@testable import Todo

@Suite struct TodoItemsTests {
  private func items(unfinished: Int, finished: Int) -> TodoItems {
    var items = TodoItems()
    for index in 0..<finished { items.add(TodoItem(name: "finished \(index)", isFinished: true)) }
    for index in 0..<unfinished { items.add(TodoItem(name: "unfinished \(index)")) }
    return items
  }

  @Test(arguments: [(0, 0, true), (4, 0, true), (4, 9, true), (5, 0, false), (5, 3, false), (6, 0, false)])
  func `An item can be added while fewer than five are unfinished`(
    _ unfinished: Int, _ finished: Int, _ canAdd: Bool
  ) {
    #expect(items(unfinished: unfinished, finished: finished).canAdd == canAdd)
  }

  @Test func `A list can be cleared unless it is empty`() {
    #expect(!TodoItems().canClear)
    #expect(items(unfinished: 1, finished: 0).canClear)
    #expect(items(unfinished: 0, finished: 1).canClear)
  }

  // After a number, the word is always in the plural.
  @Test(arguments: [(0, "Todo"), (1, "1 ToDos"), (2, "2 ToDos"), (6, "6 ToDos")])
  func `The title has the number of items, unless the list is empty`(_ count: Int, _ title: String) {
    #expect(items(unfinished: count, finished: 0).title == title)
  }

  @Test func `Items are found, changed and deleted by id`() {
    let first = TodoItem(name: "first")
    var second = TodoItem(name: "second")
    var items = TodoItems()
    items.add(first)
    items.add(second)
    second.name = "the second"
    let wereFound = [items.update(second), items.toggle(first.id)]
    #expect(wereFound == [true, true])
    #expect(items[first.id]?.isFinished == true)
    #expect(items[second.id]?.name == "the second")
    items.delete(first.id)
    #expect(items.elements == [second])
    let wereFoundAfterDeletion = [items.update(first), items.toggle(first.id)]
    #expect(wereFoundAfterDeletion == [false, false])
    // Adding an item whose id is in the list doesn't add a second one.
    items.add(second)
    #expect(items.elements == [second])
    items.clear()
    #expect(items == TodoItems())
  }

  @Test func `A list is encoded as an array, and survives encoding and decoding`() throws {
    let id = "11111111-2222-3333-4444-555555555555"
    let json = #"[{"id":"\#(id)","isFinished":true,"name":"买牛奶"}]"#
    let items = try JSONDecoder().decode(TodoItems.self, from: Data(json.utf8))
    #expect(items.elements == [TodoItem(id: try #require(UUID(uuidString: id)), name: "买牛奶", isFinished: true)])
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    #expect(String(decoding: try encoder.encode(items), as: UTF8.self) == json)
  }

  @Test func `Decoding fails if two items have the same id`() throws {
    let item = #"{"id":"11111111-2222-3333-4444-555555555555","isFinished":true,"name":"x"}"#
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(TodoItems.self, from: Data("[\(item),\(item)]".utf8))
    }
  }
}
