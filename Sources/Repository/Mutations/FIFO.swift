/// A queue whose ends cost constant time, amortised.
struct FIFO<Element: Sendable>: Sendable {
  private var storage: [Element] = []
  /// Where the first element is; what is before it is left over.
  private var head = 0

  init(_ elements: [Element] = []) {
    storage = elements
  }

  var first: Element? { head < storage.count ? storage[head] : nil }

  var count: Int { storage.count - head }

  /// All elements in order.
  var elements: [Element] { Array(storage[head...]) }

  /// The first elements in order.
  func first(_ count: Int) -> [Element] { Array(storage[head...].prefix(count)) }

  mutating func append(_ element: Element) {
    storage.append(element)
  }

  mutating func prepend(_ element: Element) {
    if head > 0 {
      head -= 1
      storage[head] = element
    } else {
      storage.insert(element, at: 0)
    }
  }

  /// Inserts an element before the last ones that have to be behind it.
  ///
  /// - Complexity: O(*m*) for the *m* elements behind it.
  mutating func insert(_ element: Element, before isBehind: (Element) -> Bool) {
    var index = storage.count
    while index > head, isBehind(storage[index - 1]) { index -= 1 }
    storage.insert(element, at: index)
  }

  mutating func removeFirst() -> Element? {
    guard let first else { return nil }
    head += 1
    // Moves the rest at most once for each element that was taken.
    if head > 32, head * 2 > storage.count {
      storage.removeFirst(head)
      head = 0
    }
    return first
  }

  /// Takes linear time.
  mutating func removeAll(where shouldRemove: (Element) -> Bool) {
    storage.removeFirst(head)
    head = 0
    storage.removeAll(where: shouldRemove)
  }
}
