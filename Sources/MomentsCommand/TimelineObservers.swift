internal import Moments
internal import Multicast
internal import Repository

/// Three observers of one timeline: the list, the detail of a moment, and the counter of all likes.
///
/// Each observer has a subscription of its own. The command reads them in turn, so that its output has a fixed order.
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

  /// Returns the next timeline, after all three observers have received it; `nil` if the repository was released.
  mutating func next() async -> MomentsDetails? {
    let seen = await list.next()
    _ = await detail.next()
    likeCount = await counter.next()?.likeCount ?? likeCount
    return seen
  }

  /// Receives the next timeline in each observer, and returns a line for each observer with what it shows.
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
  /// The number of likes of all moments.
  fileprivate var likeCount: Int {
    moments.reduce(0) { $0 + ($1.likes?.count ?? 0) }
  }
}
