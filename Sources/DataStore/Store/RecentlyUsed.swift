/// Decides which decoded values a store keeps in memory: the most recently used ones, up to a total size.
///
/// - Complexity: Amortized O(log *n*) for a use, where *n* is the number of kept values, if their sizes are similar.
struct RecentlyUsed {
  /// The maximum total size of the kept values, in encoded bytes.
  ///
  /// The most recently used value is kept regardless of its size.
  private let limit: Int
  /// The size of each kept value, and the sequence number of its last use.
  private var uses: [StoreKeyName: (size: Int, number: UInt64)] = [:]
  private var totalSize = 0
  private var useCount: UInt64 = 0

  init(limit: Int) {
    self.limit = limit
  }

  /// Records the use of a value.
  ///
  /// - Returns: The keys of the values to release.
  mutating func use(_ key: StoreKeyName, size newSize: Int) -> [StoreKeyName] {
    useCount += 1
    totalSize += newSize - (uses.updateValue((newSize, useCount), forKey: key)?.size ?? 0)
    guard totalSize > limit else { return [] }
    // Releases values down to half of the limit, so that most uses release nothing.
    let oldestFirst = uses.sorted { $0.value.number < $1.value.number }
    var releasedKeys: [StoreKeyName] = []
    for (oldKey, use) in oldestFirst where totalSize > limit / 2 && oldKey != key {
      uses[oldKey] = nil
      totalSize -= use.size
      releasedKeys.append(oldKey)
    }
    return releasedKeys
  }

  /// Records that a value is no longer kept.
  mutating func remove(_ key: StoreKeyName) {
    totalSize -= uses.removeValue(forKey: key)?.size ?? 0
  }

  /// Records that no value is kept.
  mutating func removeAll() {
    (uses, totalSize) = ([:], 0)
  }
}
