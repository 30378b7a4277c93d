internal import Moments
internal import Multicast
internal import Repository

/// Three observers of one timeline: the list, the detail of a moment, and the counter of all likes.
///
/// Each observer has a subscription of its own. The command reads them in turn, so that its output has a fixed order.
struct TimelineObservers {
  private typealias Timelines = ObservedValues<MomentsDetails>

  private var listTimelines: Timelines.AsyncIterator
  private var detailTimelines: Timelines.AsyncIterator
  private var counterTimelines: Timelines.AsyncIterator
  private var likeCount = 0
  private var newest: MomentsDetails?

  init(of timelines: ObservedValues<MomentsDetails>) {
    listTimelines = timelines.makeAsyncIterator()
    detailTimelines = timelines.makeAsyncIterator()
    counterTimelines = timelines.makeAsyncIterator()
  }

  /// Returns the next timeline, after all three observers have received it; `nil` if the repository was released.
  mutating func next() async -> MomentsDetails? {
    let timeline = await listTimelines.next()
    _ = await detailTimelines.next()
    likeCount = await counterTimelines.next()?.likeCount ?? likeCount
    newest = timeline
    return timeline
  }

  /// Returns the present timeline, after all three observers have received it; `nil` if there is none, or the repository
  /// was released.
  ///
  /// The observers receive nothing if they have it already.
  mutating func next(until states: ObservedValues<MomentsLoadState>) async -> MomentsDetails? {
    var present: MomentsDetails?
    for await state in states {
      present = state.value
      break
    }
    while newest != present {
      if await next() == nil { return nil }
    }
    return present
  }

  /// Receives the next timeline in each observer, and returns a line for each observer with what it shows.
  mutating func describeNext(momentID: String) async -> [String] {
    let previousCount = likeCount
    let momentInList = await listTimelines.next()?.moments.first { $0.id == momentID }
    let momentInDetail = await detailTimelines.next()?.moments.first { $0.id == momentID }
    likeCount = await counterTimelines.next()?.likeCount ?? likeCount
    return [
      "  list:    "
        + (momentInList.map { TimelineText.mark(isLiked: $0.isLiked ?? false) + TimelineText.heading(of: $0) } ?? "–"),
      "  detail:  " + (momentInDetail.map { TimelineText.likes($0.likes?.count ?? 0) } ?? "–"),
      "  counter: \(TimelineText.likes(previousCount)), now \(TimelineText.likes(likeCount))",
    ]
  }
}

extension MomentsDetails {
  /// The total number of likes of all moments.
  fileprivate var likeCount: Int {
    moments.reduce(0) { $0 + ($1.likes?.count ?? 0) }
  }
}
