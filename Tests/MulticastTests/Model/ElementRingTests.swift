import Testing

@testable import Multicast

@Suite struct ElementRingTests {
  @Test func `The memory that a burst took is given back, and what is left stays in order`() {
    var ring = ElementRing<String>()
    for number in 0..<10_000 { ring.append("\(number)") }
    #expect(ring.capacity == 16_384)
    var released: ContiguousArray<String> = []
    ring.removeFirst(9_990, into: &released)
    ring.shrink()
    #expect(ring.capacity == 32)
    #expect(released.count == 9_990)
    #expect((0..<10).map { ring.element(at: $0) } == (9_990..<10_000).map(String.init))
  }

  @Test func `A ring in use keeps its memory`() {
    var ring = ElementRing<Int>()
    for number in 0..<1_000 { ring.append(number) }
    var released: ContiguousArray<Int> = []
    ring.removeFirst(800, into: &released)
    ring.shrink()
    #expect(ring.capacity == 1_024)
    #expect(ring.count == 200)
  }
}
