/// Elements created before a measurement starts, so that the measured loop doesn't include their creation.
struct ElementPool<Element: Payload>: Sendable {
  /// The number of elements, which is a power of two, so that masking a position yields an index.
  private static var size: Int { 1024 }

  private let elements = (0..<Self.size).map(Element.init(number:))

  /// The element to send at a position.
  ///
  /// Positions beyond the last element start again with the first one.
  subscript(position: Int) -> Element {
    elements[position & (Self.size - 1)]
  }

  /// Returns the tally of a subscriber that received the elements at the given positions, in order.
  func tally(of positions: Range<Int>) -> Tally {
    var tally = Tally()
    for position in positions { tally.add(self[position].number) }
    return tally
  }
}
