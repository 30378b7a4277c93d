/// The changes that mutations made to the base while fetches were in flight.
///
/// A fetched value may lack some of them. It is certainly right to apply a change to it again if the change makes no
/// difference the second time: if the value includes the change already, nothing happens, unless somebody else has
/// undone the change since. That is then as if it had been undone after the value was made, and the next fetched value
/// shows it.
///
/// - Complexity: O(1) amortized to record a change; O(*k*) applications and comparisons to apply *k* changes.
struct RecentChanges<Value: Equatable> {
  typealias Timestamp = VersionBarriers.Timestamp

  private struct Change {
    let arrivedAt: Timestamp
    let apply: (Value) -> Value?
  }

  /// The base when a fetch began.
  struct EarlierBase {
    let value: Value?
    /// The base as it was fetched; `nil` if no mutation had changed it.
    let fetched: Value?
  }

  /// The number of changes that are certainly kept; up to twice as many are, which bounds the work of joining a value.
  static var maximumCount: Int { 256 }

  /// The fetches in flight.
  private var fetches: [Timestamp: EarlierBase] = [:]
  private var changes: [Change] = []
  /// The arrival of the last change that was dropped because there were too many.
  private var lastDropped: Timestamp?

  /// Whether a fetch is in flight.
  ///
  /// Otherwise no change has to be recorded.
  private var hasFetches: Bool { !fetches.isEmpty }

  mutating func beginFetch(at request: Timestamp, _ base: EarlierBase) {
    fetches[request] = base
  }

  mutating func endFetch(at request: Timestamp) {
    fetches[request] = nil
    if fetches.isEmpty { removeAll() }
  }

  /// Returns the base when a fetch began; `nil` if the fetch isn't in flight.
  func base(at request: Timestamp) -> EarlierBase? { fetches[request] }

  /// Records a change; `apply` returns `nil` for a value on which the change isn't possible.
  mutating func append(at arrival: Timestamp, _ apply: @escaping (Value) -> Value?) {
    guard hasFetches else { return }
    changes.append(Change(arrivedAt: arrival, apply: apply))
    guard changes.count > 2 * Self.maximumCount else { return }
    lastDropped = changes[Self.maximumCount - 1].arrivedAt
    changes.removeFirst(Self.maximumCount)
  }

  /// Forgets the changes, because the base was replaced by a newer value than any fetch in flight can be joined to.
  mutating func removeAll() {
    (changes, lastDropped) = ([], nil)
  }

  /// Restores the changes of an earlier copy, as if none had been recorded since, but not the fetches.
  mutating func restoreChanges(of earlier: RecentChanges) {
    if hasFetches { (changes, lastDropped) = (earlier.changes, earlier.lastDropped) }
  }

  /// Returns a value with all changes since a request applied; `nil` if one of them isn't possible on it, or can't be
  /// applied twice.
  func applied(to value: Value, since request: Timestamp) -> Value? {
    if let lastDropped, lastDropped > request { return nil }
    var value = value
    for change in changes where change.arrivedAt > request {
      guard let changed = change.apply(value), change.apply(changed) == changed else { return nil }
      value = changed
    }
    return value
  }
}
