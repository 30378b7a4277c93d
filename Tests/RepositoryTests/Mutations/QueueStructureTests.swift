import MulticastTesting
import Testing

@testable import Repository

/// The pure structures of the queue, each against a plain model.
@Suite struct QueueStructureTests {
  @Test(arguments: 0..<20 as Range<UInt64>)
  func `The list of entries does what a dictionary does, in order`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    var list = EntryList<Int>()
    var model: [UInt64: Int] = [:]
    var highest: UInt64 = 1000
    for step in 0..<2000 {
      // Mostly behind everything, as in a queue; sometimes in between.
      let isBehind = Int.random(in: 0..<4, using: &generator) > 0
      if isBehind { highest += UInt64.random(in: 1...3, using: &generator) }
      let number = isBehind ? highest : UInt64.random(in: 0...highest, using: &generator)
      switch Int.random(in: 0..<5, using: &generator) {
      case 0...1 where model[number] == nil:
        list.insert(step, number: number)
        model[number] = step
      case 2:
        #expect(list.remove(number) == model.removeValue(forKey: number))
      case 3:
        if let any = model.keys.min() {
          #expect(list.remove(any) == model.removeValue(forKey: any))
        }
      default:
        list[number] = step
        if model[number] != nil { model[number] = step }
      }
      #expect(list[number] == model[number])
      #expect(list.count == model.count)
      if step % 20 == 0 { #expect(list.elements == model.keys.sorted().map { model[$0]! }) }
    }
  }

  @Test func `A copy of the list keeps what it had`() {
    var list = EntryList<Int>()
    for number in 0..<1000 { list.insert(number, number: UInt64(number)) }
    let copy = list
    for number in 0..<1000 where number % 3 == 0 { list.remove(UInt64(number)) }
    for number in 0..<1000 where number % 3 == 1 { list[UInt64(number)] = -1 }
    #expect(copy.elements == Array(0..<1000))
    #expect(list.elements == (0..<1000).filter { $0 % 3 != 0 }.map { $0 % 3 == 1 ? -1 : $0 })
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func `The queue of lanes does what an array does`(seed: UInt64) {
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

  @Test(arguments: 0..<20 as Range<UInt64>)
  func `What falls due first comes first`(seed: UInt64) {
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
