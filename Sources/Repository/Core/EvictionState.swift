internal import DataStore
internal import Foundation

/// The stored values of a repository, and which of them an ``EvictionPolicy`` evicts.
///
/// A pure state machine: methods record values, removals and uses, and return the values to remove.
///
/// **Invariant**: ``count`` and ``byteCount`` are the number and the total size of the stored values. `order` contains
/// the last use of each value, unless ``takeVictims(at:limit:isKept:)`` took the value or had to keep it. Such a value
/// returns to `order` with its next use, and a taken one also with ``restoreVictims(_:)``.
///
/// - Complexity: O(1) amortized for each function, unless stated otherwise. The memory depends on the number of values
///   that are stored now, not on the number that were ever stored.
struct EvictionState<Key: Hashable & Sendable> {
  /// A value to remove.
  struct Victim {
    let key: Key
    let tag: StoreTag
  }

  private struct Item {
    var tag: StoreTag
    /// The revision of the commit that stored or removed the value.
    var revision: UInt64
    var byteCount: Int
    var usedAt: Date
    /// The id of the last use, or `nil` if `order` doesn't contain that use.
    var useID: UInt64?
    /// Whether this repository removed the value and the store hasn't reported that yet.
    var isRemoved = false
  }

  private struct Use {
    let key: Key
    let id: UInt64
  }

  private let policy: EvictionPolicy
  private var items: [Key: Item] = [:]
  /// The uses, the least recent first.
  ///
  /// May contain uses that a later use of the same value has replaced.
  private var order = FIFO<Use>()
  private var lastUseID: UInt64 = 0

  /// The number of values.
  private(set) var count = 0
  /// The total size of all values in bytes.
  private(set) var byteCount = 0

  init(_ policy: EvictionPolicy) {
    self.policy = policy
  }

  /// Whether the values exceed a limit.
  var isOverLimit: Bool { isOverLimit(count, byteCount) }

  private func isOverLimit(_ count: Int, _ byteCount: Int) -> Bool {
    policy.maximumCount.map { count > $0 } ?? false || policy.maximumBytes.map { byteCount > $0 } ?? false
  }

  // MARK: - Recording

  /// Records a stored value, which counts as a use.
  ///
  /// - Parameters:
  ///   - key: The key of the value.
  ///   - tag: The tag of the commit that wrote it.
  ///   - byteCount: The size of the value in bytes.
  ///   - revision: The revision of that commit. If the recorded revision isn't older, the call has no effect.
  ///   - time: The time at which the value was stored.
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

  /// Records that this repository removed a value.
  ///
  /// The store reports the removal later.
  mutating func recordOwnRemoval(of key: Key, revision: UInt64) {
    guard let item = items[key], revision > item.revision else { return }
    uncount(item)
    items[key]?.isRemoved = true
    items[key]?.revision = revision
  }

  /// Records a removal that the store reports.
  mutating func recordRemoval(of key: Key, revision: UInt64) {
    // Not `>`, because the store reports a removal by this repository with the revision that is recorded already.
    guard let item = items[key], revision >= item.revision else { return }
    uncount(item)
    items[key] = nil
  }

  private mutating func uncount(_ item: Item) {
    guard !item.isRemoved else { return }
    count -= 1
    byteCount -= item.byteCount
  }

  /// Records a use of a value, which is now the most recently used one.
  mutating func recordUse(of key: Key, at time: Date) {
    guard items[key] != nil else { return }
    lastUseID += 1
    items[key]?.usedAt = time
    items[key]?.useID = lastUseID
    order.append(Use(key: key, id: lastUseID))
    // Bounds the memory by the number of values: more than half of the uses are outdated and are removed. The 16 avoids
    // doing that too often while there are few values.
    if order.count > 2 * items.count + 16 { order.removeAll { items[$0.key]?.useID != $0.id } }
  }

  // MARK: - Evicting

  /// Takes at most `limit` values to remove, the least recently used first, until the remaining values are within the
  /// limits of the policy and not idle.
  ///
  /// The taken values, and those that must be kept, aren't considered again until their next use. The taken ones are
  /// also considered again after ``restoreVictims(_:)``.
  ///
  /// - Parameters:
  ///   - now: The present time.
  ///   - limit: The greatest number of values to take.
  ///   - isKept: Returns whether a value must be kept.
  /// - Complexity: O(*n*) amortized, where *n* is the number of values that are taken or must be kept.
  mutating func takeVictims(at now: Date, limit: Int, isKept: (Key) -> Bool) -> [Victim] {
    var victims: [Victim] = []
    var (remainingCount, remainingByteCount) = (count, byteCount)
    while victims.count < limit, let (key, item) = firstInOrder(),
      isOverLimit(remainingCount, remainingByteCount) || isIdle(item, at: now)
    {
      _ = order.removeFirst()
      items[key]?.useID = nil
      if isKept(key) { continue }
      victims.append(Victim(key: key, tag: item.tag))
      remainingCount -= 1
      remainingByteCount -= item.byteCount
    }
    return victims
  }

  /// Restores values that couldn't be removed.
  ///
  /// They are the first to be taken again, except those used meanwhile.
  ///
  /// - Complexity: That of ``FIFO/prepend(_:)`` for each of them.
  mutating func restoreVictims(_ victims: [Victim]) {
    for victim in victims.reversed() {
      guard let item = items[victim.key], item.useID == nil else { continue }
      lastUseID += 1
      items[victim.key]?.useID = lastUseID
      order.prepend(Use(key: victim.key, id: lastUseID))
    }
  }

  /// Returns the time at which the next value becomes idle, or `nil` if none does.
  mutating func nextIdleTime() -> Date? {
    guard let idleTime = policy.idleTime, let (_, item) = firstInOrder() else { return nil }
    return item.usedAt + TimeInterval(idleTime)
  }

  private func isIdle(_ item: Item, at now: Date) -> Bool {
    policy.idleTime.map { item.usedAt + TimeInterval($0) <= now } ?? false
  }

  /// Returns the least recently used of the values in `order`, and removes the outdated uses before it.
  private mutating func firstInOrder() -> (Key, Item)? {
    while let use = order.first {
      if let item = items[use.key], item.useID == use.id, !item.isRemoved { return (use.key, item) }
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
