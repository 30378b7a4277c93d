internal import Moments
internal import Multicast
internal import Repository

/// Three screens that watch one timeline: the list, the detail of a moment, and the counter of all likes.
///
/// Each has a subscription of its own. The command reads them in turn, so that what it prints has one order.
struct TimelineObservers {
  private typealias Timelines = ObservedValues<MomentsDetails>

  private var list: Timelines.AsyncIterator
  private var detail: Timelines.AsyncIterator
  private var counter: Timelines.AsyncIterator
  private var likeCount = 0

  init(of timelines: ObservedValues<MomentsDetails>) {
    list = timelines.makeAsyncIterator()
    detail = timelines.makeAsyncIterator()
    counter = timelines.makeAsyncIterator()
  }

  /// The next timeline, seen by all three; nil when the repository has ended.
  mutating func next() async -> MomentsDetails? {
    let seen = await list.next()
    _ = await detail.next()
    likeCount = await counter.next()?.likeCount ?? likeCount
    return seen
  }

  /// What each observer shows of its next timeline, in a line each.
  mutating func describeNext(momentID: String) async -> [String] {
    let before = likeCount
    let listed = await list.next()?.moments.first { $0.id == momentID }
    let detailed = await detail.next()?.moments.first { $0.id == momentID }
    likeCount = await counter.next()?.likeCount ?? likeCount
    return [
      "  list:    "
        + (listed.map { TimelineText.mark(isLiked: $0.isLiked ?? false) + TimelineText.heading(of: $0) } ?? "–"),
      "  detail:  " + (detailed.map { TimelineText.likes($0.likes?.count ?? 0) } ?? "–"),
      "  counter: \(TimelineText.likes(before)), now \(TimelineText.likes(likeCount))",
    ]
  }
}

extension MomentsDetails {
  /// How many likes all moments have together.
  fileprivate var likeCount: Int {
    moments.reduce(0) { $0 + ($1.likes?.count ?? 0) }
  }
}
