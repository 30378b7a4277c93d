import DataStore
import TestSupport

/// How many numbered commits were made in a store, and what must therefore be stored.
struct CommitProgress {
  let kind: NumberedCommits
  private(set) var number = 0
  private(set) var state = NumberedCommits.State()

  init(_ kind: NumberedCommits) {
    self.kind = kind
  }

  mutating func advance() {
    number += 1
    kind.apply(number, to: &state)
  }

  /// Finds out whether the commit after the last acknowledged one was made, and advances accordingly.
  ///
  /// - Parameters:
  ///   - acknowledged: The number of the last acknowledged commit.
  ///   - open: Opens a store, which no other process uses, as after a relaunch.
  /// - Throws: What is stored if it is neither what the one nor what the other left.
  mutating func find(acknowledged: Int, open: () -> any KeyValueStore) async throws {
    while number < acknowledged { advance() }
    // Either way of reading has to finish what was interrupted, so either comes first at times.
    let observesFirst = acknowledged.isMultiple(of: 2)
    let first = try await NumberedCommits.read(open(), observing: observesFirst)
    let second = try await NumberedCommits.read(open(), observing: !observesFirst)
    guard first == second else { throw Unexpected(expected: first, inFlight: nil, found: second, number: number) }
    if first == state { return }
    let expected = state
    advance()
    guard first == state else {
      throw Unexpected(expected: expected, inFlight: state, found: first, number: number - 1)
    }
  }

  /// What is stored is neither what acknowledged commits left nor what one more would leave.
  struct Unexpected: Error, CustomStringConvertible {
    let expected: NumberedCommits.State
    let inFlight: NumberedCommits.State?
    let found: NumberedCommits.State
    let number: Int

    var description: String {
      let inFlight = inFlight.map { ", or with the one in flight \($0)" } ?? " and at first"
      return "After commit \(number): expected \(expected)\(inFlight), but found \(found)."
    }
  }
}
