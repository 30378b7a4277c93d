public import DataStore

/// Elements that are loaded in pages, ready to use as the value of a ``PagedSource``.
///
/// The value is stored in parts, so changing one element of a long list writes only a small part of it.
public struct Paged<Element: Codable & Equatable & Identifiable & Sendable>: BidirectionalPagedValue
where Element.ID: Sendable {
  /// The elements of one page, or of several adjacent pages.
  public var elements: [Element]

  /// The cursor of the next page; `nil` if there is none.
  public var nextCursor: String?

  /// The cursor of the page before the first element; `nil` if there is none.
  public var previousCursor: String?

  /// Creates a value.
  ///
  /// - Parameters:
  ///   - elements: The elements, in the server's order.
  ///   - nextCursor: The cursor of the next page; `nil` if there is none.
  ///   - previousCursor: The cursor of the page before the first element; `nil` if there is none.
  public init(_ elements: [Element] = [], nextCursor: String? = nil, previousCursor: String? = nil) {
    self.elements = elements
    self.nextCursor = nextCursor
    self.previousCursor = previousCursor
  }

  /// Inserts an element at the front, unless there is one with the same id.
  ///
  /// Use it in a mutation that adds an element: the element in the list may be a newer one of the server.
  ///
  /// - Complexity: O(*n*), where *n* is the number of elements.
  public mutating func insertFirst(_ element: Element) {
    if !elements.contains(where: { $0.id == element.id }) { elements.insert(element, at: 0) }
  }

  /// Puts an element in the place of the one with the same id, or at the front if there is none.
  ///
  /// Use it for an element that the server has sent.
  ///
  /// - Complexity: O(*n*), where *n* is the number of elements.
  public mutating func upsertFirst(_ element: Element) {
    if let index = elements.firstIndex(where: { $0.id == element.id }) {
      elements[index] = element
    } else {
      elements.insert(element, at: 0)
    }
  }

  /// Changes the element with an id, if there is one.
  ///
  /// - Complexity: O(*n*), where *n* is the number of elements.
  public mutating func update(_ id: Element.ID, _ change: (inout Element) -> Void) {
    guard let index = elements.firstIndex(where: { $0.id == id }) else { return }
    change(&elements[index])
  }

  /// Removes the element with an id, if there is one.
  ///
  /// - Complexity: O(*n*), where *n* is the number of elements.
  public mutating func remove(_ id: Element.ID) {
    elements.removeAll { $0.id == id }
  }
}

extension Paged: PartitionedValue {
  /// The stored data other than the elements.
  public struct Head: Codable, Equatable, Sendable {
    fileprivate let nextCursor: String?
    fileprivate let previousCursor: String?
  }

  /// Creates a value from its stored parts.
  public init(head: Head, elements: [Element]) {
    self.init(elements, nextCursor: head.nextCursor, previousCursor: head.previousCursor)
  }

  /// The stored data other than the elements.
  public var head: Head { Head(nextCursor: nextCursor, previousCursor: previousCursor) }
}
