/// What is asked of the server, and so what its reply is a part of.
enum MomentsRequest: Hashable, Sendable {
  /// The timeline from one end to the other.
  case whole
  /// The newest moments.
  case newestPage
  /// The moments behind the one with a cursor.
  case nextPage(after: String)
}

/// A reply of the server, and what it answers.
///
/// Pure: says what is to be stored, so that what is stored is always a stretch of the server's timeline without a gap.
struct MomentsReply: Sendable {
  let request: MomentsRequest
  let details: MomentsDetails

  /// Whether it is the timeline from one end to the other, whatever is stored.
  var isWhole: Bool {
    // A server that does not page answers every request with the whole.
    request == .whole || details.pageInfo == nil
  }

  /// Whether what is stored has a part in what is to be stored.
  var needsStored: Bool { !isWhole || details.lacksAddresses }

  /// Whether it has the newest moments, and so tells what is new.
  var hasHead: Bool {
    if case .nextPage = request { isWhole } else { true }
  }

  /// What to store in the place of what is stored; nil when the reply does not continue that.
  ///
  /// - Parameters:
  ///   - stored: What is stored.
  ///   - refusedCursor: Where the server refused to give the next page, if it did.
  func merged(with stored: MomentsDetails?, refusedCursor: String? = nil) -> MomentsDetails? {
    if isWhole { return details.withAddresses(from: stored) }
    switch request {
    case .whole: return details.withAddresses(from: stored)
    case .newestPage: return stored.map { before($0, refusedCursor) } ?? details
    case .nextPage(let cursor):
      guard let stored, stored.nextCursor == cursor else { return nil }
      return behind(stored)
    }
  }

  /// The newest moments, with those that are stored behind the last of them.
  ///
  /// They go where they may not be what lies behind it, or do not lead on:
  /// - The page's last one is not among the stored moments: nobody knows what lies between.
  /// - The page lacks one that is stored before its last one: that may be anywhere by now.
  /// - The page has the last one of the stored moments, or the server refused to give what comes behind that.
  private func before(_ stored: MomentsDetails, _ refusedCursor: String?) -> MomentsDetails {
    guard details.pageInfo?.hasNextPage == true, let last = details.moments.last,
      let joint = stored.moments.firstIndex(where: { $0.id == last.id })
    else { return details }
    let newer = Set(details.moments.map(\.id))
    let rest = stored.moments[(joint + 1)...].filter { !newer.contains($0.id) }
    guard stored.moments[..<joint].allSatisfy({ newer.contains($0.id) }),
      rest.last?.id == stored.moments.last?.id,
      refusedCursor == nil || stored.nextCursor != refusedCursor
    else { return details }
    return MomentsDetails(
      userDetails: details.userDetails, moments: details.moments + rest, pageInfo: stored.pageInfo)
  }

  /// The stored moments, with the next ones behind them.
  private func behind(_ stored: MomentsDetails) -> MomentsDetails {
    let newer = Set(stored.moments.map(\.id))
    return MomentsDetails(
      userDetails: details.userDetails,
      moments: stored.moments + details.moments.filter { !newer.contains($0.id) },
      pageInfo: details.pageInfo)
  }
}

extension MomentsDetails {
  /// Whether there are links whose address was not asked for.
  fileprivate var lacksAddresses: Bool { moments.contains { $0.type == .url && $0.url == nil } }

  /// The timeline with the addresses of links that an earlier reply brought and this one was not asked for.
  ///
  /// - Complexity: O(*n*), where *n* is the number of moments; O(1) extra where no address is missing.
  fileprivate func withAddresses(from stored: MomentsDetails?) -> MomentsDetails {
    guard let stored, lacksAddresses else { return self }
    let known = stored.moments.compactMap { moment in moment.url.map { (moment.id, $0) } }
    let addresses = Dictionary(known, uniquingKeysWith: { first, _ in first })
    var details = self
    for index in details.moments.indices where details.moments[index].url == nil {
      details.moments[index].url = addresses[details.moments[index].id]
    }
    return details
  }

  /// Where the next page begins; nil when there is none, or the server does not page.
  var nextCursor: String? {
    guard let pageInfo, pageInfo.hasNextPage else { return nil }
    return pageInfo.endCursor
  }
}
