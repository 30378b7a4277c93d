import Testing

@testable import Multicast

@Suite struct ElementRingTests {
  @Test func `Shrinking a ring releases unused memory, and keeps the remaining elements in order`() {
    var ring = ElementRing<String>()
    for number in 0..<10_000 { ring.append("\(number)") }
    #expect(ring.capacity == 16_384)
    var released = ReleasedElements<String>()
    ring.removeFirst(9_990, into: &released)
    ring.shrink()
    #expect(ring.capacity == 32)
    #expect(released.count == 9_990)
    released.release()
    #expect((0..<10).map { ring.element(at: $0) } == (9_990..<10_000).map { "\($0)" })
  }

  @Test func `Reading a backlog releases its memory, in the log and in a subscriber's own buffer`() {
    // A read returns many elements of the log, but only one of a subscriber's own buffer.
    for (policy, limit) in [(BufferingPolicy<Never>.unbounded, 64), (.dropNewest(10_000), 1)] {
      var contents = ChannelContents<Int, Never>(replay: 0)
      let id = contents.subscribe(policy)
      var released = ReleasedElements<Int>()
      for element in 0..<10_000 { _ = contents.send(element, releasing: &released) }
      #expect(contents.backlogCapacity(of: id) == 16_384)
      let memory = UnsafeMutablePointer<Int>.allocate(capacity: limit)
      var elements: [Int] = []
      while case .elements(let count) = contents.read(
        id, limit: limit, into: ElementSlots(base: memory), releasing: &released)
      {
        elements += (0..<count).map { memory[$0] }
      }
      memory.deallocate()
      #expect(elements == Array(0..<10_000))
      #expect(contents.backlogCapacity(of: id) <= 64)
    }
  }

  @Test func `ReleasedElements releases oldest first even if it has taken over a ring's memory`() {
    let releasedIDs = Recorder<Int>()
    func makeToken(_ id: Int) -> Token { Token(id) { releasedIDs.record($0) } }
    var ring = ElementRing<Token>()
    for id in -64..<64 { ring.append(makeToken(id)) }
    var released = ReleasedElements<Token>()
    ring.removeFirst(64, into: &released)
    released.release()
    #expect(releasedIDs.takeValues() == Array(-64..<0))

    // This fills the ring's memory, with the oldest element in the middle.
    for id in 64..<128 { ring.append(makeToken(id)) }
    #expect(ring.capacity == 128)
    var otherRing = ElementRing<Token>()
    for id in 128..<131 { otherRing.append(makeToken(id)) }
    released = ReleasedElements()
    ring.removeFirst(128, into: &released)
    #expect(ring.capacity == 0)
    otherRing.removeFirst(3, into: &released)
    #expect(released.count == 131)
    released.release()
    #expect(releasedIDs.takeValues() == Array(0..<131))

    // The ring, whose memory was taken over, allocates new memory.
    ring.append(makeToken(131))
    #expect(ring.element(at: 0).id == 131)
  }

  @Test func `A ring that is more than an eighth full keeps its memory`() {
    var ring = ElementRing<Int>()
    for number in 0..<1_000 { ring.append(number) }
    var released = ReleasedElements<Int>()
    ring.removeFirst(800, into: &released)
    ring.shrink()
    #expect(ring.capacity == 1_024)
    #expect(ring.count == 200)
  }
}

extension ChannelContents {
  /// The capacity of the ring that holds a subscriber's backlog.
  fileprivate func backlogCapacity(of id: Int) -> Int {
    state.isBuffered(id) ? buffers.buffer(id).pointee.capacity : kept.capacity
  }
}
