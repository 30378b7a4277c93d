/// A binary heap of elements with deadlines, the earliest first.
///
/// - Complexity: O(log *n*) to insert or remove an element, where *n* is the number of elements; O(1) for ``first``.
struct DeadlineHeap<Element: Sendable>: Sendable {
  struct Item: Sendable {
    /// The deadline, as a time since the creation of the repository's ``ElapsedClock``.
    let deadline: Duration
    let element: Element
  }

  /// The items in heap order: the one with the earliest deadline is first, and the order of the others is undefined.
  private(set) var items: [Item] = []

  /// The item with the earliest deadline.
  var first: Item? { items.first }

  mutating func insert(_ element: Element, deadline: Duration) {
    items.append(Item(deadline: deadline, element: element))
    var child = items.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      if items[parent].deadline <= items[child].deadline { break }
      items.swapAt(child, parent)
      child = parent
    }
  }

  /// Removes and returns the item with the earliest deadline.
  mutating func removeFirst() -> Item? {
    guard let last = items.popLast() else { return nil }
    guard let first = items.first else { return last }
    items[0] = last
    var parent = 0
    while true {
      var child = 2 * parent + 1
      if child >= items.count { break }
      if child + 1 < items.count, items[child + 1].deadline < items[child].deadline { child += 1 }
      if items[parent].deadline <= items[child].deadline { break }
      items.swapAt(parent, child)
      parent = child
    }
    return first
  }

  mutating func removeAll() {
    items = []
  }

  /// Returns a heap with the elements that meet a condition.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of elements.
  func filter(_ isKept: (Element) -> Bool) -> Self {
    var kept = Self()
    for item in items where isKept(item.element) { kept.insert(item.element, deadline: item.deadline) }
    return kept
  }
}
