/// An element, created from a number, that the compared systems deliver.
protocol Payload: Sendable {
  /// The name of the type on the command line.
  static var name: ElementName { get }

  /// The elements to send.
  ///
  /// The rows `burst`, `producer`, `wake` and `bounded` share one pool, because the location of its elements in memory
  /// affects the figures.
  static var pool: ElementPool<Self> { get }

  init(number: Int)

  /// The number to add to a tally.
  ///
  /// Computing it uses all properties of the element, so it may differ from the number of `init(number:)`.
  var number: Int { get }
}

extension Payload {
  /// The name of the type in the tables.
  static var label: String { name.rawValue }
}

extension Int: Payload {
  static var name: ElementName { .int }

  static let pool = ElementPool<Int>()

  init(number: Int) { self = number }

  var number: Int { self }
}

/// An element that owns two allocations: an object, and a string that is too long to be stored inline.
struct OwnedElement: Payload {
  private final class Object: Sendable {
    let number: Int

    init(number: Int) { self.number = number }
  }

  static var name: ElementName { .owned }

  static let pool = ElementPool<OwnedElement>()

  private let object: Object
  private let text: String

  init(number: Int) {
    object = Object(number: number)
    text = "A moment with the number \(number), told at length."
  }

  var number: Int { object.number &+ text.utf8.count }
}
