import MulticastTesting
import TestRounds
import Testing

@testable import DataStore

/// The names that a store reads after reports of external changes.
@Suite struct WatchStateTests {
  private typealias Plan = WatchState.Plan

  @Test func `When the watch begins, the first plan includes all observed names`() {
    var state = WatchState()
    #expect(!state.isWatching)
    state.begin()
    #expect(state.isWatching)
    #expect(state.takePlan() == Plan(names: [], includesAllObserved: true))
    #expect(state.takePlan() == Plan(names: [], includesAllObserved: false))
  }

  @Test func `Reported names are read once, in the order of their last reports`() {
    var state = WatchState()
    state.report(.names(["a", "b", "a"]))
    state.report(.names(["c", "b"]))
    #expect(state.takePlan() == Plan(names: ["a", "c", "b"], includesAllObserved: false))
    #expect(state.takePlan() == Plan(names: [], includesAllObserved: false))
  }

  @Test func `Names that could not be read are in the next plan, before new ones`() {
    var state = WatchState()
    state.report(.names(["a"]))
    let plan = state.takePlan()
    state.report(.names(["b"]))
    state.markUnread(plan)
    #expect(state.takePlan().names == ["a", "b"])
    state.markUnread("c")
    state.report(.unknown)
    let fullPlan = state.takePlan()
    #expect(fullPlan == Plan(names: ["c"], includesAllObserved: true))
    state.markUnread(fullPlan)
    #expect(state.takePlan() == fullPlan)
  }

  @Test func `A watch that has broken can begin again`() {
    var state = WatchState()
    state.begin()
    _ = state.takePlan()
    state.end()
    #expect(!state.isWatching)
    state.begin()
    #expect(state.takePlan().includesAllObserved)
  }

  @Test func `The watch begins when an observer needs it and no suspension holds it back`() {
    var state = WatchState()
    #expect(!state.mustBegin)
    #expect(state.suspend() == true)
    state.request()
    #expect(!state.mustBegin)
    #expect(state.resume() == true)
    #expect(state.mustBegin)
    state.begin()
    #expect(!state.mustBegin)
    state.end()
    #expect(state.mustBegin)
  }

  @Test func `Only the first suspension closes the backend, and only the last end of one opens it`() {
    var state = WatchState()
    state.request()
    state.begin()
    _ = state.takePlan()
    #expect(state.resume() == false)
    #expect(!state.isSuspended)
    #expect(state.suspend() == true)
    #expect(state.isSuspended)
    #expect(!state.isWatching)
    #expect(state.suspend() == false)
    #expect(state.resume() == false)
    #expect(state.isSuspended)
    #expect(!state.mustBegin)
    #expect(state.resume() == true)
    #expect(state.mustBegin)
    #expect(state.takePlan().includesAllObserved)
    #expect(state.resume() == false)
    #expect(state.takePlan() == Plan(names: [], includesAllObserved: false))
  }

  @Test func `No reported name is lost, in any sequence of events`() {
    for seed in 0..<Rounds.count(200, full: 1_000) {
      var random = SplitMix64(seed: UInt64(seed))
      var state = WatchState()
      var unread: Set<String> = []
      var hasUnknownChanges = false
      for _ in 0..<50 {
        switch Int.random(in: 0..<5, using: &random) {
        case 0...1:
          let names = (0..<Int.random(in: 0..<4, using: &random)).map { _ in "\(Int.random(in: 0..<5, using: &random))"
          }
          state.report(.names(names))
          unread.formUnion(names)
        case 2:
          state.report(.unknown)
          hasUnknownChanges = true
        case 3:
          let plan = state.takePlan()
          #expect(Set(plan.names) == unread && plan.names.count == unread.count, "seed \(seed)")
          #expect(plan.includesAllObserved == hasUnknownChanges, "seed \(seed)")
          (unread, hasUnknownChanges) = ([], false)
          if Bool.random(using: &random) { continue }
          // In the other half of the cases, the reads of the plan fail.
          state.markUnread(plan)
          (unread, hasUnknownChanges) = (Set(plan.names), plan.includesAllObserved)
        default:
          // A name that is never reported, because reported names are below 5.
          state.markUnread("5")
          unread.insert("5")
        }
      }
    }
  }
}
