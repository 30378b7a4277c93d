public import DataStore

/// Elements that come in pages, ready to use as the value of a ``PagedSource``.
///
/// It is stored in parts, so a change of one element writes a small part of a long list.
public struct Paged<Element: Codable & Equatable & Identifiable & Sendable>: BidirectionalPagedValue
where Element.ID: Sendable {
  /// The elements of all pages that were fetched so far.
  public var elements: [Element]

  /// Where the next page begins; `nil` if there is none.
  public var nextCursor: String?

  /// Where the page before the first element ends; `nil` if there is none.
  public var previousCursor: String?

  /// Creates a value.
  ///
  /// - Parameters:
  ///   - elements: The elements, in the server's order.
  ///   - nextCursor: Where the next page begins; `nil` if there is none.
  ///   - previousCursor: Where the page before the first element ends; `nil` if there is none.
  public init(_ elements: [Element] = [], nextCursor: String? = nil, previousCursor: String? = nil) {
    self.elements = elements
    self.nextCursor = nextCursor
    self.previousCursor = previousCursor
  }

  /// Puts an element first, or replaces the one with the same id where it is.
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
  /// What is stored beside the elements.
  public struct Head: Codable, Equatable, Sendable {
    fileprivate let nextCursor: String?
    fileprivate let previousCursor: String?
  }

  /// Creates a value of its parts.
  public init(head: Head, elements: [Element]) {
    self.init(elements, nextCursor: head.nextCursor, previousCursor: head.previousCursor)
  }

  /// What is stored beside the elements.
  public var head: Head { Head(nextCursor: nextCursor, previousCursor: previousCursor) }
}
