import Foundation
import Repository
import Testing

@Suite struct LoadStateTests {
  struct Failure: Error, Hashable { let number: Int }
  typealias State = LoadState<String, Failure>

  static let old = LoadedValue("old", savedAt: Date(timeIntervalSinceReferenceDate: 1), isPending: true)
  static let new = LoadedValue("new", savedAt: Date(timeIntervalSinceReferenceDate: 2))
  static let first = Failure(number: 1)
  static let second = Failure(number: 2)

  static let states: [State] = [
    .idle, .loading(previous: nil), .loading(previous: old), .loaded(old), .failed(first, previous: nil),
    .failed(first, previous: old),
  ]

  private func results(_ transition: (inout State) -> Void) -> [State] {
    Self.states.map { state in
      var state = state
      transition(&state)
      return state
    }
  }

  @Test func `A load keeps the existing value`() {
    #expect(
      results { $0.beginLoading() } == [
        .loading(previous: nil), .loading(previous: nil), .loading(previous: Self.old), .loading(previous: Self.old),
        .loading(previous: nil), .loading(previous: Self.old),
      ])
  }

  @Test func `A success replaces the value and the failure`() {
    #expect(results { $0.succeed(Self.new) } == Array(repeating: .loaded(Self.new), count: 6))
  }

  @Test func `A failure keeps the existing value`() {
    #expect(
      results { $0.fail(Self.second) } == [
        .failed(Self.second, previous: nil), .failed(Self.second, previous: nil),
        .failed(Self.second, previous: Self.old), .failed(Self.second, previous: Self.old),
        .failed(Self.second, previous: nil), .failed(Self.second, previous: Self.old),
      ])
  }

  @Test func `Cancelling a load keeps the existing value, and has no effect without a load`() {
    #expect(
      results { $0.cancel() } == [
        .idle, .idle, .loaded(Self.old), .loaded(Self.old), .failed(Self.first, previous: nil),
        .failed(Self.first, previous: Self.old),
      ])
  }

  @Test func `A received value ends neither a load nor a failure`() {
    #expect(
      results { $0.receive(Self.new) } == [
        .loaded(Self.new), .loading(previous: Self.new), .loading(previous: Self.new), .loaded(Self.new),
        .failed(Self.first, previous: Self.new), .failed(Self.first, previous: Self.new),
      ])
  }

  @Test func `Each state reports its value, whether it is loading, and its failure`() {
    #expect(Self.states.map(\.value) == [nil, nil, "old", "old", nil, "old"])
    #expect(Self.states.map(\.loadedValue?.isPending) == [nil, nil, true, true, nil, true])
    #expect(Self.states.map(\.isLoading) == [false, true, true, false, false, false])
    #expect(Self.states.map(\.failure) == [nil, nil, nil, nil, Self.first, Self.first])
  }
}
