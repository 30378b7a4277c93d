import Multicast
import Testing

@Suite struct BufferOverflowTests {
  @Test func `The description fits a capacity of 0, of 1, and of more`() {
    #expect(
      [0, 1, 2].map { BufferOverflow(capacity: $0).description } == [
        "The subscriber fell behind: it has no buffer, and wasn't suspended in next() when an element arrived. "
          + "Read faster, raise the capacity, or choose a policy that drops elements.",
        "The subscriber fell behind: its buffer of 1 element was full when another element arrived. "
          + "Read faster, raise the capacity, or choose a policy that drops elements.",
        "The subscriber fell behind: its buffer of 2 elements was full when another element arrived. "
          + "Read faster, raise the capacity, or choose a policy that drops elements.",
      ])
  }
}
