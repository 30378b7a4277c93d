/// An element with a number.
///
/// A subscriber adds up the numbers of its elements. The sum shows whether the subscriber received all of them.
protocol CountedElement: Sendable {
  static var sample: Self { get }

  var number: Int { get }
}

extension Int: CountedElement {
  /// A number that is unknown at compile time, so that no workload is optimized for it.
  static var sample: Int { CommandLine.arguments.count }

  var number: Int { self }
}

/// An element that owns an object and a string that is too long to be stored inline.
struct OwnedElement: CountedElement {
  private final class Object: Sendable {
    let number = 1
  }

  private let object = Object()
  private let text = String(repeating: "A moment. ", count: 4)

  static var sample: OwnedElement { OwnedElement() }

  var number: Int { object.number + text.utf8.count }
}
