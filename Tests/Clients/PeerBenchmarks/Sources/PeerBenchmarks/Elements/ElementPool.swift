/// Elements made before the clock starts, so that a measured loop does not pay for making them.
struct ElementPool<Element: Payload>: Sendable {
  private static var size: Int { 1024 }

  private let elements = (0..<Self.size).map(Element.init(number:))

  /// The element to send at a position; the pool goes round.
  subscript(position: Int) -> Element {
    elements[position & (Self.size - 1)]
  }

  /// What a reader must have counted that got the elements at these positions, in this order.
  func tally(of positions: Range<Int>) -> Tally {
    var tally = Tally()
    for position in positions { tally.add(self[position].number) }
    return tally
  }
}
