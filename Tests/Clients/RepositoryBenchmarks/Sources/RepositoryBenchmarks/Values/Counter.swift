internal import Repository

/// A small value: an increasing number with a text.
struct Counter: Codable, Equatable, Sendable {
  /// The collection in which every system stores the counters.
  static let collection = "counter"

  var serial = 0
  var text = "A text as long as a title."
}

/// Raises a counter to at least a given number.
struct Raise: RepositoryMutation, Equatable {
  let serial: Int

  func apply(to counter: inout Counter) {
    counter.serial = max(counter.serial, serial)
  }
}
