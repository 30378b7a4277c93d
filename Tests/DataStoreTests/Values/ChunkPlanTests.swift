import Multicast
import MulticastTesting
import TestRounds
import Testing

@testable import DataStore

@Suite struct ChunkPlanTests {
  private func makeStoredValue(count: Int) -> DividedValue {
    var value = DividedValue()
    value.save(Array(0..<count))
    return value
  }

  // MARK: Sizes

  @Test func `A first version of more than 128 elements is divided evenly into chunks of about 64`() {
    #expect(makeStoredValue(count: 0).counts == [])
    #expect(makeStoredValue(count: 1).counts == [1])
    #expect(makeStoredValue(count: 128).counts == [128])
    #expect(makeStoredValue(count: 129).counts == [64, 65])
    #expect(makeStoredValue(count: 159).counts == [79, 80])
    #expect(makeStoredValue(count: 160).counts == [53, 53, 54])
    #expect(makeStoredValue(count: 10_000).counts.allSatisfy { (64...65).contains($0) })
  }

  @Test func `A value without elements has no chunks`() {
    #expect(ChunkPlan(oldCounts: [64, 36], old: Array(0..<100), new: []).chunks == [])
    #expect(ChunkPlan(oldCounts: [], old: [], new: []).chunks == [])
  }

  @Test(arguments: [0, 1, 31, 32, 64, 128, 129, 1000])
  func `Saving an equal version keeps every chunk`(count: Int) {
    var value = makeStoredValue(count: count)
    // `save` returns the number of written chunks.
    #expect(value.save(value.elements) == 0)
  }

  @Test func `An unchanged chunk without a changed neighbor is kept regardless of its size`() {
    let elements = Array(0..<400)
    let plan = ChunkPlan(oldCounts: [300, 1, 35, 64], old: elements, new: elements.replacing(at: 340))
    #expect(plan.chunks == [.kept(0), .kept(1), .kept(2), .new(336..<400, basedOn: 3)])
  }

  @Test func `An old chunk without elements isn't kept`() {
    let plan = ChunkPlan(oldCounts: [0, 64, 0, 0, 36, 0], old: Array(0..<100), new: Array(0..<100))
    #expect(plan.chunks == [.kept(1), .kept(4)])
    // The new chunk also replaces the empty chunks beside the old one of 36 elements, so it is based on no old chunk.
    let shorterPlan = ChunkPlan(oldCounts: [0, 64, 0, 0, 36, 0], old: Array(0..<100), new: Array(0..<99))
    #expect(shorterPlan.chunks == [.kept(1), .new(64..<99)])
  }

  @Test func `A new chunk that is too large is split, and one that is too small is joined with its smaller neighbor`() {
    let elements = Array(0..<299)
    let splitPlan = ChunkPlan(oldCounts: [200, 99], old: elements, new: elements.replacing(at: 0))
    #expect(splitPlan.chunks == [.new(0..<66), .new(66..<133), .new(133..<200), .kept(1)])
    // An element inserted between two chunks first forms a new chunk of its own, which is too small.
    let leftJoinPlan = ChunkPlan(oldCounts: [80, 119, 100], old: elements, new: elements.inserting([-1], at: 80))
    #expect(leftJoinPlan.chunks == [.new(0..<81, basedOn: 0), .kept(1), .kept(2)])
    let rightJoinPlan = ChunkPlan(oldCounts: [119, 80, 100], old: elements, new: elements.inserting([-1], at: 119))
    #expect(rightJoinPlan.chunks == [.kept(0), .new(119..<200, basedOn: 1), .kept(2)])
  }

  @Test func `A growing value stays in one chunk until it has more than 128 elements`() {
    var value = makeStoredValue(count: 10)
    value.save(Array(0..<11))
    #expect(value.counts == [11])
    value.save(Array(-100..<11))
    #expect(value.counts == [111])
    // The stored chunk is too small, and its neighbor is new, so the two are joined and then split.
    value = makeStoredValue(count: 10)
    value.save(Array(-150..<10))
    #expect(value.counts == [53, 53, 54])
  }

  @Test(arguments: [
    Repetition("one appended", initialCount: 0, times: 1000) { $0 + [-$1] },
    Repetition("one prepended", initialCount: 0, times: 1000) { [-$1] + $0 },
    Repetition("one inserted in the middle", initialCount: 0, times: 1000) { $0.inserting([-$1], at: $0.count / 2) },
    Repetition("a page appended", initialCount: 0, times: 100) { $0 + ($1 * 20..<$1 * 20 + 20) },
    Repetition("a page prepended", initialCount: 0, times: 100) { ($1 * 20..<$1 * 20 + 20) + $0 },
    Repetition("the first deleted", initialCount: 1000, times: 1000) { elements, _ in Array(elements.dropFirst()) },
    Repetition("the last deleted", initialCount: 1000, times: 1000) { elements, _ in Array(elements.dropLast()) },
    Repetition("one deleted anywhere", initialCount: 1000, times: 1000) { $0.removing(at: ($1 * 331) % $0.count) },
    Repetition("one deleted, then one inserted", initialCount: 1000, times: 1000) { elements, step in
      step % 2 == 0 ? elements.inserting([-step], at: step * 7 % 999) : elements.removing(at: step * 13 % 999)
    },
  ])
  private func `Small chunks don't accumulate`(repetition: Repetition) {
    var value = makeStoredValue(count: repetition.initialCount)
    for step in 1...repetition.times {
      value.save(repetition.edit(value.elements, step))
      value.expectBoundedCounts()
    }
  }

  // MARK: Locality

  @Test func `A change of one element writes only its chunk`() {
    let value = makeStoredValue(count: 1000)
    for index in stride(from: 0, to: 1000, by: Rounds.step(7)) {
      var changed = value
      #expect(changed.save(value.elements.replacing(at: index)) == 1)
      #expect(changed.counts == value.counts)
    }
  }

  @Test(arguments: 0..<UInt64(Rounds.count(10, full: 50)))
  func `Changes in place write only the changed chunks, and move no chunk border`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    var value = makeStoredValue(count: .random(in: 1...3000, using: &generator))
    for _ in 0..<20 {
      let counts = value.counts
      var elements = value.elements
      let indices = (0..<Int.random(in: 1...60, using: &generator)).map { _ in
        Int.random(in: elements.indices, using: &generator)
      }
      for index in indices { elements[index] = Int.random(in: 1_000_000...Int.max, using: &generator) }
      let changedChunks = Set(indices.map { index in value.starts.lastIndex { $0 <= index }! })
      #expect(value.save(elements) == changedChunks.count)
      #expect(value.counts == counts)
    }
  }

  @Test func `Inserting or deleting one element writes one chunk, or at most two if a chunk must be split or joined`() {
    let value = makeStoredValue(count: 1000)
    for index in stride(from: 0, through: 1000, by: Rounds.step(8)) {
      var longer = value
      #expect(longer.save(value.elements.inserting([-1], at: index)) == 1)
      guard index < 1000 else { continue }
      var shorter = value
      #expect(shorter.save(value.elements.removing(at: index)) == 1)
    }
    let elements = Array(0..<320)
    for counts in [[128, 128, 64], [32, 128, 32, 128], [128, 32, 32, 128]] {
      for index in 0..<320 {
        var longer = DividedValue(elements: elements, counts: counts)
        #expect(longer.save(elements.inserting([-1], at: index)) <= 2)
        var shorter = DividedValue(elements: elements, counts: counts)
        #expect(shorter.save(elements.removing(at: index)) <= 2)
      }
    }
  }

  @Test(arguments: 0..<UInt64(Rounds.count(4, full: 20)))
  func `Inserting or deleting one of many equal elements writes one or two chunks`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    var value = DividedValue()
    let period = Int.random(in: 1...200, using: &generator)
    value.save((0..<2000).map { $0 % period == 0 || Int.random(in: 0..<100, using: &generator) == 0 ? 1 : 0 })
    for _ in 0..<20 {
      let index = Int.random(in: value.elements.indices, using: &generator)
      #expect(value.save(value.elements.inserting([.random(in: 0...1, using: &generator)], at: index)) <= 2)
      #expect(value.save(value.elements.removing(at: .random(in: value.elements.indices, using: &generator))) <= 2)
    }
  }

  @Test func `Adding a page at the end or at the front writes one or two chunks`() {
    let page = Array(-20..<0)
    for count in stride(from: 0, through: 2000, by: Rounds.step(9) * 7) {
      var (appended, prepended) = (makeStoredValue(count: count), makeStoredValue(count: count))
      for _ in 0..<20 {
        #expect(appended.save(appended.elements + page.map { $0 - appended.elements.count }) <= 2)
        #expect(prepended.save(page.map { $0 - prepended.elements.count } + prepended.elements) <= 2)
      }
    }
  }

  @Test(arguments: [300, 1000, 10_000])
  func `Edits at three distant places write a chunk each`(count: Int) {
    var value = makeStoredValue(count: count)
    // The new versions have the same number of elements, one less, and one more.
    let edited = value.elements.replacing(at: 5).inserting([-2], at: count / 2)
    #expect(value.save(edited.removing(at: count - 7)) == 3)
    value = makeStoredValue(count: count)
    #expect(value.save(edited.removing(at: count - 7).removing(at: count - 7)) == 3)
    value = makeStoredValue(count: count)
    #expect(value.save(edited.replacing(at: count - 7)) == 3)
  }

  @Test func `Many insertions far apart write little more than one chunk each`() {
    var value = makeStoredValue(count: 10_000)
    var elements = value.elements
    // There are 25 insertions.
    for index in stride(from: 9900, to: 0, by: -400) { elements.insert(-index, at: index) }
    #expect(value.save(elements) <= 30)
  }

  @Test func `Inserting a long block between two distant changes keeps the chunks between the block and the changes`() {
    var value = makeStoredValue(count: 2000)
    let edited = value.elements.replacing(at: 0).replacing(at: 1999)
    // Two chunks are written for the changes. The block of 1000 elements is written together with the chunk that it is
    // inserted into, which has at most 65 elements.
    #expect(value.save(edited.inserting(Array(-1000..<0), at: 1000)) <= 2 + (1000 + 65 + 63) / 64)
  }

  @Test func `A moved block is written again, and the elements between its old and its new position are kept`() {
    for (from, to) in [(200, 1500), (1500, 200), (0, 1900), (1900, 0)] {
      var value = makeStoredValue(count: 2000)
      var elements = value.elements
      let block = Array(elements[from..<from + 100])
      elements.removeSubrange(from..<from + 100)
      elements.insert(contentsOf: block, at: to)
      // Of the 31 chunks, only those near the two positions are written.
      #expect(value.save(elements) <= 6)
    }
  }

  // MARK: Cost

  @Test func `Equal versions are compared in one pass`() {
    for count in [0, 1, 64, 1000] {
      let old = makeStoredValue(count: count)
      #expect(comparisonCount(from: old, to: old.elements) == count)
    }
  }

  @Test func `Versions with changes in place are compared in one pass`() {
    let old = makeStoredValue(count: 10_000)
    #expect(comparisonCount(from: old, to: old.elements.replacing(at: 5000)) <= 10_000)
    var scattered = old.elements
    for index in stride(from: 0, to: 10_000, by: 200) { scattered[index] = -1 }
    #expect(comparisonCount(from: old, to: scattered) <= 10_000)
  }

  @Test func `Versions with one insertion or deletion are compared in little more than one pass`() {
    let old = makeStoredValue(count: 10_000)
    // The chunk that changes has at most 65 elements, and may be compared again.
    for index in [0, 10, 5000, 9990] {
      #expect(comparisonCount(from: old, to: old.elements.inserting([-1], at: index)) <= 10_000 + 65)
      #expect(comparisonCount(from: old, to: old.elements.removing(at: index)) <= 10_000 + 65)
    }
  }

  @Test func `A chunk changed in place isn't searched for`() {
    let old = makeStoredValue(count: 10_000)
    // Because of the insertion, the versions have different counts, so there is no first comparison in place.
    var edited = old.elements.inserting([-1], at: 9990)
    let changedStarts = stride(from: 1, to: 150, by: 4).map { old.starts[$0] }
    for start in changedStarts { edited[start] = -1 }
    // The chunk after each changed one is compared twice, which takes at most 65 more comparisons. The changed chunk is
    // compared at its old distance from the start of the value, then at its old distance from the end. This takes one
    // comparison each, because its first element differs. The insertion also takes at most 70 more comparisons.
    #expect(comparisonCount(from: old, to: edited) <= 10_000 + 70 * (changedStarts.count + 1))
  }

  @Test(arguments: [0, 1, 100, 5000] + (Rounds.areFull ? [20_000] : []))
  func `The number of comparisons is bounded for versions without a common chunk`(count: Int) {
    let old = makeStoredValue(count: 5000)
    // A plan may make 4 comparisons for each old and new element.
    #expect(comparisonCount(from: old, to: (0..<count).map { -1 - $0 }) <= 4 * (5000 + count))
    #expect(comparisonCount(from: old, to: (0..<count).map { ($0 * 7919) % 5000 }) <= 4 * (5000 + count))
  }

  @Test(arguments: [1, 2, 64, 65, 5000])
  func `The number of comparisons is bounded for versions with repeated elements`(period: Int) {
    var old = DividedValue()
    old.save((0..<5000).map { $0 % period == 0 ? 1 : 0 })
    for new in [
      Array(repeating: 0, count: 5000), Array(repeating: 0, count: 7000), old.elements.reversed(),
      (0..<6000).map { $0 % (period + 1) == 0 ? 1 : 0 }, (0..<5000).map { ($0 + 1) % period == 0 ? 1 : 0 },
    ] {
      #expect(comparisonCount(from: old, to: new) <= 4 * (old.elements.count + new.count))
    }
  }

  /// Returns how often elements are compared to plan the chunks of a new version.
  private func comparisonCount(from old: DividedValue, to new: [Int]) -> Int {
    CountingList.$comparisonCounter.withValue(Counter()) {
      _ = ChunkPlan(oldCounts: old.counts, old: old.elements, new: new, of: CountingList.self)
      return CountingList.comparisonCounter.count.withLock { $0 }
    }
  }

  @Test func `If the searches use up the allowed comparisons, the chunks that stayed in place are still kept`() {
    // Each of the first 100 chunks differs from zeros only in its last element, so the searches for these chunks use up
    // the allowed comparisons: 4 for each of the 20,000 old and new elements.
    var elements = (0..<10_000).map { $0 >= 5000 ? $0 : $0 % 50 == 49 ? 1 : 0 }
    var value = DividedValue(elements: elements, counts: Array(repeating: 50, count: 200))
    for index in 0..<5000 { elements[index] = 0 }
    for index in stride(from: 5000, to: 10_000, by: 100) { elements[index] = -1 }
    let count = comparisonCount(from: value, to: elements)
    #expect((79_000...80_000).contains(count))
    // All of the first 100 chunks have changed, and every second one of the others.
    #expect(value.save(elements) == 150)
  }

  // MARK: Random edits

  @Test(arguments: 0..<UInt64(Rounds.count(4, full: 20)))
  func `Every invariant holds after any sequence of edits`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<100 {
      // With few distinct elements, chunks are often found in the wrong place; with many, hardly ever.
      let alphabet = 0...[0, 1, 3, 50, Int.max - 1].randomElement(using: &generator)!
      var value = DividedValue()
      for _ in 0..<12 {
        var elements = value.elements
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
          elements.edit(alphabet: alphabet, using: &generator)
        }
        #expect(comparisonCount(from: value, to: elements) <= 4 * (value.elements.count + elements.count))
        value.save(elements)
        value.expectBoundedCounts()
      }
    }
  }

  @Test(arguments: 0..<UInt64(Rounds.count(4, full: 20)))
  func `Any old chunk borders lead to a valid plan`(seed: UInt64) {
    var generator = SplitMix64(seed: seed)
    for _ in 0..<100 {
      var value = DividedValue()
      for _ in 0..<Int.random(in: 0...20, using: &generator) {
        let count = Int.random(in: 0...[1, 40, 300].randomElement(using: &generator)!, using: &generator)
        value.counts.append(count)
        value.elements += (0..<count).map { _ in Int.random(in: 0...5, using: &generator) }
      }
      var elements = value.elements
      elements.edit(alphabet: 0...5, using: &generator)
      value.save(elements)
    }
  }
}

/// A stored value: its elements, and the number of elements in each chunk.
private struct DividedValue {
  var elements: [Int] = []
  var counts: [Int] = []

  /// The start of each chunk.
  var starts: [Int] { counts.reduce(into: [0]) { $0.append($0.last! + $1) }.dropLast() }

  /// Saves new elements, checks the plan of their chunks, and returns the number of written chunks.
  @discardableResult
  mutating func save(_ new: [Int], sourceLocation: SourceLocation = #_sourceLocation) -> Int {
    let plan = ChunkPlan(oldCounts: counts, old: elements, new: new)
    let starts = starts
    var joined: [Int] = []
    var newCounts: [Int] = []
    var lastKept = -1
    for chunk in plan.chunks {
      switch chunk {
      case .kept(let index):
        #expect(index > lastKept, sourceLocation: sourceLocation)
        lastKept = index
        joined += elements[starts[index]..<starts[index] + counts[index]]
        newCounts.append(counts[index])
      case .new(let range, let base):
        if let base { #expect(starts.indices.contains(base), sourceLocation: sourceLocation) }
        #expect(range.lowerBound == joined.count, sourceLocation: sourceLocation)
        #expect((1...ChunkPlan.maximumCount).contains(range.count), sourceLocation: sourceLocation)
        joined += new[range]
        newCounts.append(range.count)
      }
    }
    #expect(joined == new, sourceLocation: sourceLocation)
    (elements, counts) = (new, newCounts)
    return plan.chunks.count { if case .new = $0 { true } else { false } }
  }

  /// Checks the number of chunks, and the number of elements in each.
  func expectBoundedCounts(sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(counts.count <= max(1, elements.count / ChunkPlan.minimumCount), sourceLocation: sourceLocation)
    let allowed = (counts.count == 1 ? 1 : ChunkPlan.minimumCount)...ChunkPlan.maximumCount
    #expect(counts.allSatisfy(allowed.contains), "\(counts)", sourceLocation: sourceLocation)
  }
}

/// An edit that is repeated many times.
private struct Repetition: CustomTestStringConvertible {
  let name: String
  /// The number of elements before the first edit.
  let initialCount: Int
  let times: Int
  /// Returns the edited elements, given the old ones and the number of the repetition, from 1.
  let edit: @Sendable ([Int], Int) -> [Int]

  var testDescription: String { name }

  init(_ name: String, initialCount: Int, times: Int, edit: @escaping @Sendable ([Int], Int) -> [Int]) {
    (self.name, self.initialCount, self.times, self.edit) = (name, initialCount, times, edit)
  }
}

private struct NumberList: PartitionedValue {
  var head = 0
  var elements: [Int]
}

extension ChunkPlan {
  fileprivate init(oldCounts: [Int], old: [Int], new: [Int]) {
    self.init(oldCounts: oldCounts, old: old, new: new, of: NumberList.self)
  }
}

private final class Counter: Sendable {
  let count = Lock(0)
}

/// A list that counts the comparisons of its elements.
private struct CountingList: PartitionedValue {
  @TaskLocal static var comparisonCounter = Counter()

  var head = 0
  var elements: [Int]

  static func equalPrefixCount(of left: Span<Int>, and right: Span<Int>) -> Int {
    let count = NumberList.equalPrefixCount(of: left, and: right)
    comparisonCounter.count.withLock { $0 += min(count + 1, left.count, right.count) }
    return count
  }
}

extension [Int] {
  /// Returns a copy in which the element at an index is replaced with a new one.
  fileprivate func replacing(at index: Int) -> [Int] {
    var copy = self
    copy[index] = -1_000_000 - index
    return copy
  }

  fileprivate func inserting(_ elements: [Int], at index: Int) -> [Int] {
    var copy = self
    copy.insert(contentsOf: elements, at: index)
    return copy
  }

  fileprivate func removing(at index: Int) -> [Int] {
    var copy = self
    copy.remove(at: index)
    return copy
  }

  /// Makes one random edit.
  fileprivate mutating func edit(alphabet: ClosedRange<Int>, using generator: inout SplitMix64) {
    let length = Int.random(in: 1...[1, 1, 20, 100, 400].randomElement(using: &generator)!, using: &generator)
    let added = (0..<length).map { _ in Int.random(in: alphabet, using: &generator) }
    let start = Int.random(in: 0...count, using: &generator)
    let part = start..<Swift.min(start + length, count)
    // If there are no elements, some are appended.
    switch isEmpty ? 3 : Int.random(in: 0..<18, using: &generator) {
    case 0...2: self[start % count] = added[0]
    case 3: append(contentsOf: added)
    case 4: insert(contentsOf: added, at: 0)
    case 5...6: insert(contentsOf: added, at: start)
    case 7: removeLast(Swift.min(length, count))
    case 8: removeFirst(Swift.min(length, count))
    case 9...10: removeSubrange(part)
    case 11...12:
      for element in added { self[Int.random(in: indices, using: &generator)] = element }
    case 13...14:
      let block = self[part]
      removeSubrange(part)
      insert(contentsOf: block, at: Int.random(in: 0...count, using: &generator))
    case 15: self[part].reverse()
    case 16: reverse()
    default: self = length == 1 ? [] : (0..<length * 2).map { _ in Int.random(in: alphabet, using: &generator) }
    }
  }
}
