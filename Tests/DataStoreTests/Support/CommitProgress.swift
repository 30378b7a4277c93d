import DataStore
import TestSupport

/// The number of commits that were made in a store, and the values that must therefore be stored.
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

  /// Determines whether the commit after the last acknowledged one was made, and advances accordingly.
  ///
  /// - Parameters:
  ///   - acknowledged: The number of the last acknowledged commit.
  ///   - open: Opens a store that no other process uses, as after a relaunch.
  /// - Throws: ``UnexpectedState`` if the stored values are neither those before nor those after the commit, or if two
  ///   reads find different values.
  mutating func catchUp(acknowledged: Int, open: () throws -> any KeyValueStore) async throws {
    while number < acknowledged { advance() }
    // The first read must finish an interrupted commit, whether it uses `observe` or `load`. So each of the two comes
    // first in some calls.
    let observesFirst = acknowledged.isMultiple(of: 2)
    let first = try await NumberedCommits.read(try open(), observing: observesFirst)
    let second = try await NumberedCommits.read(try open(), observing: !observesFirst)
    guard first == second else { throw UnexpectedState(expected: first, inFlight: nil, found: second, number: number) }
    if first == state { return }
    let expected = state
    advance()
    guard first == state else {
      throw UnexpectedState(expected: expected, inFlight: state, found: first, number: number - 1)
    }
  }

  /// An error for stored values that match the acknowledged commits neither with nor without the commit in flight, or
  /// that differ between two reads.
  struct UnexpectedState: Error, CustomStringConvertible {
    let expected: NumberedCommits.State
    /// The state with the commit in flight; `nil` if two reads differ.
    ///
    /// In that case, ``expected`` is what the first read found.
    let inFlight: NumberedCommits.State?
    let found: NumberedCommits.State
    let number: Int

    var description: String {
      let inFlight = inFlight.map { ", or with the commit in flight \($0)" } ?? " in both reads"
      return "After commit \(number): expected \(expected)\(inFlight), but found \(found)."
    }
  }
}
