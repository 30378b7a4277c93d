import MulticastTesting
import Testing

@testable import DataStore

@Suite struct ChunkDifferenceTests {
  private struct NumberList: PartitionedValue {
    var head = 0
    var elements: [Int]
  }

  private func runs(from old: [Int], to new: [Int]) -> [ChunkDifference.Run] {
    ChunkDifference(from: old.span, to: new.span, of: NumberList.self).runs
  }

  @Test func `After changes in place the unchanged elements are taken from the stored chunk`() {
    #expect(runs(from: [1, 2, 3, 4, 5], to: [1, 2, 3, 4, 5]) == [.stored(0..<5)])
    #expect(runs(from: [1, 2, 3, 4, 5], to: [1, 2, 9, 4, 5]) == [.stored(0..<2), .new(2..<3), .stored(3..<5)])
    #expect(
      runs(from: [1, 2, 3, 4, 5], to: [9, 2, 9, 9, 5])
        == [.new(0..<1), .stored(1..<2), .new(2..<4), .stored(4..<5)])
    #expect(runs(from: [1, 2], to: [3, 4]) == [.new(0..<2)])
  }

  @Test func `After an insertion the elements around it are taken from the stored chunk`() {
    #expect(runs(from: [1, 2, 3], to: [9, 1, 2, 3]) == [.new(0..<1), .stored(0..<3)])
    #expect(runs(from: [1, 2, 3], to: [1, 8, 9, 2, 3]) == [.stored(0..<1), .new(1..<3), .stored(1..<3)])
    #expect(runs(from: [1, 2, 3], to: [1, 2, 3, 9]) == [.stored(0..<3), .new(3..<4)])
    #expect(runs(from: [1, 1], to: [1, 1, 1]) == [.stored(0..<2), .new(2..<3)])
    #expect(runs(from: [], to: [1]) == [.new(0..<1)])
  }

  @Test func `After a deletion the elements around it are taken from the stored chunk`() {
    #expect(runs(from: [1, 2, 3], to: [2, 3]) == [.stored(1..<3)])
    #expect(runs(from: [1, 2, 3, 4], to: [1, 4]) == [.stored(0..<1), .stored(3..<4)])
    #expect(runs(from: [1, 2, 3], to: [1, 2]) == [.stored(0..<2)])
    #expect(runs(from: [1], to: []) == [])
  }

  @Test func `After any other change of the element count only the common prefix is taken from the stored chunk`() {
    #expect(runs(from: [1, 2, 3, 4], to: [1, 8, 3, 9, 4]) == [.stored(0..<1), .new(1..<5)])
    #expect(ChunkDifference(from: [1, 2].span, to: [8, 9, 7].span, of: NumberList.self).usesStored == false)
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func `The joined runs are the elements of the new chunk`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<1_000 {
      let old = (0..<Int.random(in: 0...12, using: &generator)).map { _ in Int.random(in: 0...3, using: &generator) }
      var new = old
      for _ in 0..<Int.random(in: 0...3, using: &generator) {
        let index = Int.random(in: 0...new.count, using: &generator)
        switch Int.random(in: 0...2, using: &generator) {
        case 0: new.insert(.random(in: 0...3, using: &generator), at: index)
        case 1 where index < new.count: new.remove(at: index)
        case _ where index < new.count: new[index] = .random(in: 0...3, using: &generator)
        default: break
        }
      }
      var joined: [Int] = []
      for run in runs(from: old, to: new) {
        switch run {
        case .stored(let range):
          #expect(!range.isEmpty)
          joined += old[range]
        case .new(let range):
          #expect(!range.isEmpty && range.lowerBound == joined.count)
          joined += new[range]
        }
      }
      #expect(joined == new, "\(old)")
    }
  }
}
