/// A queue that takes amortized constant time to append an element or to remove the first one.
struct FIFO<Element: Sendable>: Sendable {
  private var storage: [Element] = []
  /// The index of the first element.
  ///
  /// The elements of ``storage`` before it no longer belong to the queue.
  private var head = 0

  init(_ elements: [Element] = []) {
    storage = elements
  }

  var first: Element? { head < storage.count ? storage[head] : nil }

  var count: Int { storage.count - head }

  /// All elements, in order.
  ///
  /// - Complexity: O(*n*), where *n* is the number of elements.
  var elements: [Element] { Array(storage[head...]) }

  /// The first `count` elements, in order.
  ///
  /// - Complexity: O(*count*).
  func first(_ count: Int) -> [Element] { Array(storage[head...].prefix(count)) }

  mutating func append(_ element: Element) {
    storage.append(element)
  }

  /// Inserts an element at the front.
  ///
  /// - Complexity: O(1) if the place of a removed element is free. Otherwise O(*n*), where *n* is the number of
  ///   elements.
  mutating func prepend(_ element: Element) {
    if head > 0 {
      head -= 1
      storage[head] = element
    } else {
      storage.insert(element, at: 0)
    }
  }

  /// Inserts an element as far back as possible, but before the elements at the end that must follow it.
  ///
  /// - Parameters:
  ///   - element: The new element.
  ///   - mustFollow: Returns whether an element must follow the new one; `nil` if that isn't known. Such an element
  ///     follows the new one only if it is behind another element that must.
  /// - Complexity: O(*m*) for the *m* elements that follow it or may follow it.
  mutating func insert(_ element: Element, before mustFollow: (Element) -> Bool?) {
    var (index, position) = (storage.count, storage.count)
    search: while position > head {
      switch mustFollow(storage[position - 1]) {
      case true?:
        position -= 1
        index = position
      case nil: position -= 1
      case false?: break search
      }
    }
    storage.insert(element, at: index)
  }

  mutating func removeFirst() -> Element? {
    guard let first else { return nil }
    head += 1
    // Frees the places of removed elements. That moves fewer elements than were removed since it was last done.
    if head > 32, head * 2 > storage.count {
      storage.removeFirst(head)
      head = 0
    }
    return first
  }

  /// Removes the elements that meet a condition.
  ///
  /// - Complexity: O(*n*), where *n* is the number of elements.
  mutating func removeAll(where shouldRemove: (Element) -> Bool) {
    storage.removeFirst(head)
    head = 0
    storage.removeAll(where: shouldRemove)
  }
}
