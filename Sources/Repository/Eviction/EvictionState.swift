internal import DataStore
internal import Foundation

/// Which values of a repository are in the store, and which of them have to go by an ``EvictionPolicy``.
///
/// Pure: it is told of values, removals and uses, and says what to remove.
///
/// **Invariant**: ``count`` and ``byteCount`` are those of the stored values. `order` has every value once under its
/// current turn, except those that ``takeVictims(at:limit:isKept:)`` took: they come back with their next use.
///
/// - Complexity: O(1) a call, amortised, unless it says otherwise. The memory depends on the values in the store, not on
///   those that ever were.
struct EvictionState<Key: Hashable & Sendable> {
  /// A value to remove.
  struct Victim {
    let key: Key
    let tag: StoreTag
  }

  private struct Item {
    var tag: StoreTag
    /// The commit that stored or removed the value.
    var revision: UInt64
    var byteCount: Int
    var usedAt: Date
    /// The item's place in the order of uses.
    var turn: UInt64?
    /// Whether the value is removed, and the store's report of that is still to come.
    var isRemoved = false
  }

  private struct Turn {
    let key: Key
    let number: UInt64
  }

  private let policy: EvictionPolicy
  private var items: [Key: Item] = [:]
  /// The order of the uses, with what is left over of those that were followed by others.
  private var order = FIFO<Turn>()
  private var lastTurn: UInt64 = 0

  /// The number of values.
  private(set) var count = 0
  /// The size of all values.
  private(set) var byteCount = 0

  init(_ policy: EvictionPolicy) {
    self.policy = policy
  }

  /// Whether there is more than there may be.
  var isOverLimit: Bool { isOverLimit(count, byteCount) }

  private func isOverLimit(_ count: Int, _ byteCount: Int) -> Bool {
    policy.maximumCount.map { count > $0 } ?? false || policy.maximumBytes.map { byteCount > $0 } ?? false
  }

  // MARK: - Recording

  /// Records a value that is stored, which counts as a use.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - tag: The commit that wrote it.
  ///   - byteCount: Its size.
  ///   - revision: The position of that commit. What is older than what is known is ignored.
  ///   - time: When it was stored.
  mutating func recordValue(
    of key: Key, tag: StoreTag, byteCount: Int, revision: UInt64, at time: Date
  ) {
    if let item = items[key] {
      guard revision > item.revision else { return }
      uncount(item)
    }
    items[key] = Item(tag: tag, revision: revision, byteCount: byteCount, usedAt: time)
    count += 1
    self.byteCount += byteCount
    recordUse(of: key, at: time)
  }

  /// Records that a value was removed by this repository.
  ///
  /// The store's report of it is still to come.
  mutating func recordOwnRemoval(of key: Key, revision: UInt64) {
    guard let item = items[key], revision > item.revision else { return }
    uncount(item)
    items[key]?.isRemoved = true
    items[key]?.revision = revision
  }

  /// Records that a value is gone, as the store reports.
  mutating func recordRemoval(of key: Key, revision: UInt64) {
    guard let item = items[key], revision >= item.revision else { return }
    uncount(item)
    items[key] = nil
  }

  private mutating func uncount(_ item: Item) {
    guard !item.isRemoved else { return }
    count -= 1
    byteCount -= item.byteCount
  }

  /// Records the end of a use.
  mutating func recordUse(of key: Key, at time: Date) {
    guard items[key] != nil else { return }
    lastTurn += 1
    items[key]?.usedAt = time
    items[key]?.turn = lastTurn
    order.append(Turn(key: key, number: lastTurn))
    // What is left over never takes more than the values.
    if order.count > 2 * items.count + 16 { order.removeAll { items[$0.key]?.turn != $0.number } }
  }

  // MARK: - Evicting

  /// Takes values to remove, the one used least recently first: until what is left is within the limits and none of it is
  /// idle.
  ///
  /// They, and those that have to stay, are not considered again until their next use or ``giveBack(_:)``.
  ///
  /// - Parameters:
  ///   - now: The present time.
  ///   - limit: The most values to take.
  ///   - isKept: Whether a value has to stay.
  mutating func takeVictims(at now: Date, limit: Int, isKept: (Key) -> Bool) -> [Victim] {
    var victims: [Victim] = []
    var (count, byteCount) = (count, byteCount)
    while victims.count < limit, let (key, item) = firstInOrder(),
      isOverLimit(count, byteCount) || isIdle(item, at: now)
    {
      _ = order.removeFirst()
      items[key]?.turn = nil
      if isKept(key) { continue }
      victims.append(Victim(key: key, tag: item.tag))
      count -= 1
      byteCount -= item.byteCount
    }
    return victims
  }

  /// Takes values back that could not be removed: they are the first to go again, except those that were used meanwhile.
  mutating func giveBack(_ victims: [Victim]) {
    for victim in victims.reversed() {
      guard let item = items[victim.key], item.turn == nil else { continue }
      lastTurn += 1
      items[victim.key]?.turn = lastTurn
      order.prepend(Turn(key: victim.key, number: lastTurn))
    }
  }

  /// When the next value becomes idle; `nil` if none does.
  mutating func nextIdleTime() -> Date? {
    guard let idleTime = policy.idleTime, let (_, item) = firstInOrder() else { return nil }
    return item.usedAt + TimeInterval(idleTime)
  }

  private func isIdle(_ item: Item, at now: Date) -> Bool {
    policy.idleTime.map { item.usedAt + TimeInterval($0) <= now } ?? false
  }

  /// The value that was used least recently, without those that were taken.
  private mutating func firstInOrder() -> (Key, Item)? {
    while let turn = order.first {
      if let item = items[turn.key], item.turn == turn.number, !item.isRemoved { return (turn.key, item) }
      _ = order.removeFirst()
    }
    return nil
  }
}

extension TimeInterval {
  fileprivate init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self = TimeInterval(seconds) + TimeInterval(attoseconds) / 1e18
  }
}
