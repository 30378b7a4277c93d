/// The number of elements that one subscriber received, and a checksum.
///
/// A lost, duplicated or reordered element changes the count or the checksum.
struct Tally: Hashable, Sendable {
  private(set) var count = 0
  private(set) var checksum = 0

  mutating func add(_ number: Int) {
    count &+= 1
    checksum = checksum &* 31 &+ number
  }

  /// Throws ``BenchmarkError/wrongDelivery(system:expected:received:)`` unless this tally is the expected one.
  func check(against expected: Tally, system: String) throws(BenchmarkError) {
    guard self == expected else {
      throw .wrongDelivery(system: system, expected: expected, received: self)
    }
  }
}
