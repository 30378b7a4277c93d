/// An element in its place in an array.
///
/// Generic code that isn't specialised copies the elements that it compares, which for an element with eight strings
/// takes several times as long as the comparison. A noncopyable type prevents that, if both elements are parameters. A
/// structure with one stored property has the layout of that property, so the memory of an array can be bound to it. The
/// memory is only read, and only within ``Swift/Array/withBorrowedElements(_:)``.
struct BorrowedElement<Element: Equatable>: ~Copyable {
  private let element: Element

  /// Whether two elements are equal.
  static func areEqual(_ left: borrowing Self, _ right: borrowing Self) -> Bool {
    left.element == right.element
  }
}

extension Array where Element: Equatable {
  /// Calls `body` with the elements in place.
  func withBorrowedElements<Result>(
    _ body: (UnsafeBufferPointer<BorrowedElement<Element>>) -> Result
  ) -> Result {
    withUnsafeBufferPointer { $0.withMemoryRebound(to: BorrowedElement<Element>.self, body) }
  }
}
