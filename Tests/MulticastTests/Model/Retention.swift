/// A record of a run, which determines the oldest element that the channel may still keep.
///
/// An element that is no longer needed must be released after at most 16 later sends.
struct Retention {
  static let releaseInterval = 16

  /// The oldest needed position, by the number of elements sent.
  ///
  /// Until the next send, each call of ``record(_:)`` overwrites the last entry.
  private var neededBySentCount: [Int] = [0]

  /// The oldest position that may still be kept.
  private(set) var oldestAllowed = 0

  mutating func record(_ model: ChannelModel) {
    let sent = model.sentCount
    if sent == neededBySentCount.count {
      neededBySentCount.append(0)
      if sent >= Self.releaseInterval { oldestAllowed = neededBySentCount[sent - Self.releaseInterval] }
    }
    neededBySentCount[sent] = model.oldestNeeded
  }
}
