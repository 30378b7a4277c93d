import DataStore
import Foundation
import TestSupport
import Testing

/// What a store has acknowledged is there after its process was killed, and nothing is half there.
///
/// The child numbers its steps, and what a step does follows from its number: so after a kill the stored values must be
/// those after the last acknowledged step, or after the one that was under way.
@Suite struct KillTests {
  private let temporary = TemporaryFolder()

  /// What is stored after so many steps: for each user the number that was saved last.
  private func state(after steps: Int) -> [String: Int] {
    var state: [String: Int] = [:]
    for number in 1...max(steps, 1) where number <= steps { state["\(number % 3)"] = number % 7 == 0 ? nil : number }
    return state
  }

  /// What is stored, read as after a relaunch.
  private func stored(in kind: DurableStore) async throws -> [String: Int] {
    var stored: [String: Int] = [:]
    let store = kind.open(in: temporary)
    for userID in ["0", "1", "2"] {
      guard let steps = try await store.load(StoreKey<[Int]>("steps", id: userID))?.value else { continue }
      #expect(steps == Array(repeating: steps[0], count: 500))
      stored[userID] = steps[0]
    }
    return stored
  }

  /// Compares what is stored with what was acknowledged.
  ///
  /// - Returns: How many steps were taken.
  private func steps(acknowledged: Int, in kind: DurableStore) async throws -> Int? {
    let stored = try await stored(in: kind)
    return [acknowledged, acknowledged + 1].first { state(after: $0) == stored }
  }

  @Test(arguments: DurableStore.allCases)
  func `Killed at any instant, every acknowledged change is there`(kind: DurableStore) async throws {
    let rounds = ProcessInfo.processInfo.environment["MOMENTS_KILL_ROUNDS"].flatMap { Int($0) } ?? 25
    var taken = 0
    for round in 1...rounds {
      var child = try ChildProcess("take-steps", kind.place(in: temporary), ["\(taken + 1)", "1000000"])
      var acknowledged = taken
      for _ in 0..<Int.random(in: 0...8) {
        if let line = await child.line(), let number = Int(line) { acknowledged = number }
      }
      child.kill()
      if let line = await child.allLines().last, let number = Int(line) { acknowledged = number }
      #expect(await child.end() == .killed)
      guard let steps = try await steps(acknowledged: acknowledged, in: kind) else {
        let stored = try await stored(in: kind)
        Issue.record("round \(round): acknowledged \(acknowledged), but there is \(stored)")
        return
      }
      taken = steps
    }
  }

  @Test(arguments: DurableStore.allCases)
  func `Killed in the place of any call of the file system, every acknowledged change is there`(
    kind: DurableStore
  ) async throws {
    var taken = 0
    for fatal in 1... {
      let last = taken + 8
      var child = try ChildProcess("die-at-call", kind.place(in: temporary), ["\(fatal)", "\(taken + 1)", "\(last)"])
      let acknowledged = await child.allLines().last.flatMap { Int($0) } ?? taken
      let end = await child.end()
      if end == .success { #expect(acknowledged == last) } else { #expect(end == .killed) }
      taken = try #require(
        try await steps(acknowledged: acknowledged, in: kind), "call \(fatal), after \(acknowledged)")
      if end == .success { break }
    }
  }
}
