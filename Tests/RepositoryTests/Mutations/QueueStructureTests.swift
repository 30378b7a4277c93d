import MulticastTesting
import TestRounds
import Testing

@testable import Repository

/// The queue's data structures, each compared with a simple model.
@Suite struct QueueStructureTests {
  @Test(arguments: 0..<UInt64(Rounds.count(4, full: 20)))
  func `The FIFO behaves like an array`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    var queue = FIFO<Int>()
    var model: [Int] = []
    for step in 0..<1000 {
      switch Int.random(in: 0..<10, using: &generator) {
      case 0...4:
        queue.append(step)
        model.append(step)
      case 5...7: #expect(queue.removeFirst() == (model.isEmpty ? nil : model.removeFirst()))
      case 8:
        queue.prepend(step)
        model.insert(step, at: 0)
      default:
        queue.removeAll { $0 % 7 == 0 }
        model.removeAll { $0 % 7 == 0 }
      }
      #expect(queue.first == model.first)
      var copy = queue
      #expect((0...model.count).map { _ in copy.removeFirst() } == model + [nil])
    }
  }

  @Test(arguments: 0..<UInt64(Rounds.count(4, full: 20)))
  func `The heap returns items in the order of their deadlines`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    var heap = DeadlineHeap<Int>()
    var model: [Int] = []
    for _ in 0..<500 {
      if Bool.random(using: &generator) {
        let seconds = Int.random(in: 0..<100, using: &generator)
        heap.insert(seconds, deadline: .seconds(seconds))
        model.append(seconds)
      } else {
        let least = model.min()
        #expect(heap.removeFirst()?.element == least)
        if let least { model.remove(at: model.firstIndex(of: least)!) }
      }
      #expect(heap.first?.element == model.min())
    }
  }
}
