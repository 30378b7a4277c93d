import Foundation
import Moments
import Testing

@Suite struct LoadStateTests {
  struct Failure: Error, Hashable { let number: Int }
  typealias State = LoadState<String, Failure>

  static let old = LoadedValue("old", savedAt: Date(timeIntervalSinceReferenceDate: 1), isPending: true)
  static let new = LoadedValue("new", savedAt: Date(timeIntervalSinceReferenceDate: 2))
  static let firstFailure = Failure(number: 1)
  static let secondFailure = Failure(number: 2)

  static let states: [State] = [
    .idle, .loading(previous: nil), .loading(previous: old), .loaded(old), .failed(firstFailure, previous: nil),
    .failed(firstFailure, previous: old),
  ]

  @Test func `The age of a loaded value counts from its time`() {
    #expect(Self.new.age(at: Date(timeIntervalSinceReferenceDate: 4)) == .seconds(2))
  }

  /// Returns the results of a transition from each of ``states``.
  private func statesAfter(_ transition: (inout State) -> Void) -> [State] {
    Self.states.map { state in
      var state = state
      transition(&state)
      return state
    }
  }

  @Test func `Beginning a load keeps the existing value`() {
    #expect(
      statesAfter { $0.beginLoading() } == [
        .loading(previous: nil), .loading(previous: nil), .loading(previous: Self.old), .loading(previous: Self.old),
        .loading(previous: nil), .loading(previous: Self.old),
      ])
  }

  @Test func `A success replaces the value and the failure`() {
    #expect(statesAfter { $0.succeed(Self.new) } == Array(repeating: .loaded(Self.new), count: Self.states.count))
  }

  @Test func `A failure keeps the existing value`() {
    #expect(
      statesAfter { $0.fail(Self.secondFailure) } == [
        .failed(Self.secondFailure, previous: nil), .failed(Self.secondFailure, previous: nil),
        .failed(Self.secondFailure, previous: Self.old), .failed(Self.secondFailure, previous: Self.old),
        .failed(Self.secondFailure, previous: nil), .failed(Self.secondFailure, previous: Self.old),
      ])
  }

  @Test func `Cancelling keeps the existing value, and has no effect unless a load is in progress`() {
    #expect(
      statesAfter { $0.cancel() } == [
        .idle, .idle, .loaded(Self.old), .loaded(Self.old), .failed(Self.firstFailure, previous: nil),
        .failed(Self.firstFailure, previous: Self.old),
      ])
  }

  @Test func `A received value doesn't end a load in progress or replace a failure`() {
    #expect(
      statesAfter { $0.receive(Self.new) } == [
        .loaded(Self.new), .loading(previous: Self.new), .loading(previous: Self.new), .loaded(Self.new),
        .failed(Self.firstFailure, previous: Self.new), .failed(Self.firstFailure, previous: Self.new),
      ])
  }

  @Test func `Each state reports its value, whether it is loading, and its failure`() {
    #expect(Self.states.map(\.value) == [nil, nil, "old", "old", nil, "old"])
    #expect(Self.states.map(\.loadedValue?.isPending) == [nil, nil, true, true, nil, true])
    #expect(Self.states.map(\.isLoading) == [false, true, true, false, false, false])
    #expect(Self.states.map(\.failure) == [nil, nil, nil, nil, Self.firstFailure, Self.firstFailure])
  }
}
