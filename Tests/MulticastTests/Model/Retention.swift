/// The limit on keeping an element that is no longer needed, which is 16 later sends.
struct Retention {
  static let interval = 16

  /// The oldest needed position, as last recorded, for each number of elements sent.
  private var neededBySentCount: [Int] = [0]

  /// The oldest position that may still be kept.
  private(set) var oldestAllowed = 0

  mutating func record(_ model: ChannelModel) {
    let sent = model.sentCount
    if sent == neededBySentCount.count {
      neededBySentCount.append(0)
      if sent >= Self.interval { oldestAllowed = neededBySentCount[sent - Self.interval] }
    }
    neededBySentCount[sent] = model.oldestNeeded
  }
}
