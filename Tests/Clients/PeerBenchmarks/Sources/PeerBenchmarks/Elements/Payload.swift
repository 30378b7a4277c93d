/// An element that the systems carry: it can be made of a number and gives the number back.
protocol Payload: Sendable {
  /// How the command line calls the type.
  static var name: ElementName { get }

  /// The elements that are sent.
  ///
  /// One pool for all rows: where its elements lie in memory makes a difference, which must be the same for all.
  static var pool: ElementPool<Self> { get }

  init(number: Int)

  /// The number, read through everything that the element owns.
  var number: Int { get }
}

extension Payload {
  /// How the tables call the type.
  static var label: String { name.rawValue }
}

extension Int: Payload {
  static var name: ElementName { .int }

  static let pool = ElementPool<Int>()

  init(number: Int) { self = number }

  var number: Int { self }
}

/// An element that owns memory twice: an object, and a string too long to be stored in place.
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
