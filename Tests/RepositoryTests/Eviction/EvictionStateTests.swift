import DataStore
import Foundation
import MulticastTesting
import Testing

@testable import Repository

@Suite struct EvictionStateTests {
  private func time(_ seconds: Int) -> Date { Date(timeIntervalSince1970: TimeInterval(seconds)) }

  /// Creates a state with one value of each given size.
  ///
  /// The key of a value is its index, and is also the second at which the value was stored.
  private func makeState(_ policy: EvictionPolicy, sizes: [Int]) -> EvictionState<Int> {
    var state = EvictionState<Int>(policy)
    for (key, size) in sizes.enumerated() {
      state.recordValue(of: key, tag: StoreTag(), byteCount: size, revision: 0, at: time(key))
    }
    return state
  }

  @Test func `As few values as necessary are evicted, the least recently used first`() {
    var state = makeState(EvictionPolicy(maximumCount: 2), sizes: [1, 1, 1, 1])
    state.recordUse(of: 0, at: time(10))
    #expect(state.isOverLimit)
    #expect(state.takeVictims(at: time(11), limit: 9, isKept: { _ in false }).map(\.key) == [1, 2])
  }

  @Test func `Values are evicted until the total size of the rest is within the limit`() {
    var state = makeState(EvictionPolicy(maximumBytes: 100), sizes: [10, 60, 20, 50])
    #expect(state.byteCount == 140)
    #expect(state.takeVictims(at: time(9), limit: 9, isKept: { _ in false }).map(\.key) == [0, 1])
  }

  @Test func `A kept value is skipped until its next use`() {
    var state = makeState(EvictionPolicy(maximumCount: 1), sizes: [1, 1, 1])
    #expect(state.takeVictims(at: time(9), limit: 9, isKept: { $0 != 2 }).map(\.key) == [2])
    state.recordOwnRemoval(of: 2, revision: 1)
    #expect(state.isOverLimit)
    #expect(state.takeVictims(at: time(9), limit: 9, isKept: { _ in false }).isEmpty)
    state.recordUse(of: 1, at: time(10))
    #expect(state.takeVictims(at: time(11), limit: 9, isKept: { _ in false }).map(\.key) == [1])
  }

  @Test func `A value is evicted when its idle time has passed, and not before`() {
    var state = makeState(EvictionPolicy(idleTime: .seconds(60)), sizes: [1, 1])
    #expect(state.nextIdleTime() == time(60))
    state.recordUse(of: 0, at: time(30))
    #expect(state.nextIdleTime() == time(61))
    #expect(state.takeVictims(at: time(60), limit: 9, isKept: { _ in false }).isEmpty)
    #expect(state.takeVictims(at: time(61), limit: 9, isKept: { _ in false }).map(\.key) == [1])
    #expect(state.nextIdleTime() == time(90))
  }

  @Test func `A value that could not be removed is the next to be evicted, unless it was used meanwhile`() {
    var state = makeState(EvictionPolicy(maximumCount: 1), sizes: [1, 1, 1])
    let victims = state.takeVictims(at: time(9), limit: 9, isKept: { _ in false })
    #expect(victims.map(\.key) == [0, 1])
    state.recordUse(of: 0, at: time(10))
    state.restoreVictims(victims)
    #expect(state.takeVictims(at: time(11), limit: 9, isKept: { _ in false }).map(\.key) == [1, 2])
  }

  @Test func `A late report of an older commit changes nothing`() {
    var state = makeState(EvictionPolicy(maximumCount: 1), sizes: [])
    state.recordValue(of: 0, tag: StoreTag(), byteCount: 5, revision: 3, at: time(0))
    state.recordValue(of: 0, tag: StoreTag(), byteCount: 9, revision: 2, at: time(0))
    state.recordRemoval(of: 0, revision: 2)
    #expect(state.byteCount == 5)
    state.recordOwnRemoval(of: 0, revision: 4)
    #expect(state.count == 0)
    state.recordValue(of: 0, tag: StoreTag(), byteCount: 9, revision: 3, at: time(0))
    #expect(state.count == 0)
    state.recordValue(of: 0, tag: StoreTag(), byteCount: 7, revision: 5, at: time(0))
    state.recordRemoval(of: 0, revision: 4)
    #expect((state.count, state.byteCount) == (1, 7))
  }

  /// A simple model of the state: a list of all values, the least recently used first.
  private struct Model {
    var values: [(key: Int, size: Int, usedAt: Int)] = []
    /// The keys of taken and kept values, which aren't considered until they are used or restored.
    var skippedKeys: Set<Int> = []

    mutating func use(_ key: Int, at time: Int) {
      guard let index = values.firstIndex(where: { $0.key == key }) else { return }
      var value = values.remove(at: index)
      value.usedAt = time
      values.append(value)
      skippedKeys.remove(key)
    }

    mutating func takeVictims(_ policy: EvictionPolicy, at now: Int, _ limit: Int, _ isKept: (Int) -> Bool) -> [Int] {
      var victims: [Int] = []
      for value in values where !skippedKeys.contains(value.key) {
        let remaining = values.filter { !victims.contains($0.key) }
        let isOverLimit =
          remaining.count > policy.maximumCount ?? .max
          || remaining.reduce(0) { $0 + $1.size } > policy.maximumBytes ?? .max
        let isIdle = policy.idleTime.map { .seconds(now - value.usedAt) >= $0 } ?? false
        guard isOverLimit || isIdle, victims.count < limit else { break }
        skippedKeys.insert(value.key)
        if !isKept(value.key) { victims.append(value.key) }
      }
      return victims
    }
  }

  @Test(arguments: [
    EvictionPolicy(maximumCount: 5), EvictionPolicy(maximumBytes: 40), EvictionPolicy(idleTime: .seconds(20)),
    EvictionPolicy(maximumCount: 8, maximumBytes: 60, idleTime: .seconds(50)),
  ])
  func `The state agrees with a simple model after each of many random operations`(_ policy: EvictionPolicy) {
    var random = SplitMix64(seed: 14)
    var (state, model) = (EvictionState<Int>(policy), Model())
    for now in 1...5_000 {
      let key = Int.random(in: 0..<16, using: &random)
      let revision = UInt64(now)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        let size = Int.random(in: 1...12, using: &random)
        state.recordValue(of: key, tag: StoreTag(), byteCount: size, revision: revision, at: time(now))
        model.values.removeAll { $0.key == key }
        model.values.append((key, size, now))
        model.skippedKeys.remove(key)
      case 5:
        state.recordRemoval(of: key, revision: revision)
        model.values.removeAll { $0.key == key }
      case 6, 7:
        state.recordUse(of: key, at: time(now))
        model.use(key, at: now)
      default:
        let kept = Set((0..<16).filter { _ in Int.random(in: 0..<4, using: &random) == 0 })
        let limit = Int.random(in: 1...6, using: &random)
        let victims = state.takeVictims(at: time(now), limit: limit) { kept.contains($0) }
        #expect(victims.map(\.key) == model.takeVictims(policy, at: now, limit, kept.contains))
        if Bool.random(using: &random) {
          for victim in victims {
            state.recordOwnRemoval(of: victim.key, revision: revision)
            model.values.removeAll { $0.key == victim.key }
          }
        } else {
          state.restoreVictims(victims)
          let restored = model.values.filter { value in victims.contains { $0.key == value.key } }
          model.values.removeAll { value in victims.contains { $0.key == value.key } }
          model.values.insert(contentsOf: restored, at: 0)
          model.skippedKeys.subtract(victims.map(\.key))
        }
      }
      #expect(state.count == model.values.count)
      #expect(state.byteCount == model.values.reduce(0) { $0 + $1.size })
    }
  }
}
