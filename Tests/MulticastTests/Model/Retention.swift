/// How long an element that nobody needs any more may be kept: for 16 further sends.
struct Retention {
  static let interval = 16

  /// What was needed last while so many elements had been sent.
  private var neededBySentCount: [Int] = [0]

  /// The first position that may still be kept.
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
