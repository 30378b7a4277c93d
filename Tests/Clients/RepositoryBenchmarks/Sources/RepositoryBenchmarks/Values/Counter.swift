internal import Repository

/// A small value: a number that only grows, with a text.
struct Counter: Codable, Equatable, Sendable {
  /// The collection in which all systems keep their counters.
  static let collection = "counter"

  var serial = 0
  var text = "A text as long as a title."
}

/// Makes a counter at least a certain number.
struct Raise: RepositoryMutation, Equatable {
  let serial: Int

  func apply(to counter: inout Counter) {
    counter.serial = max(counter.serial, serial)
  }
}
