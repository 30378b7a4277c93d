/// What one reader received: how many elements, and a checksum that a lost, doubled or swapped element changes.
struct Tally: Hashable, Sendable {
  private(set) var count = 0
  private(set) var checksum = 0

  mutating func add(_ number: Int) {
    count &+= 1
    checksum = checksum &* 31 &+ number
  }

  /// Stops the comparison when a reader did not receive what was sent to it.
  func check(against expected: Tally, system: String) throws(BenchmarkError) {
    guard self == expected else {
      throw .wrongDelivery(system: system, expected: expected, received: self)
    }
  }
}
