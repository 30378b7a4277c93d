/// The likes that the event streams of a service have shown.
///
/// Belongs to one event loop and is used on it only, so it needs no lock.
final class StreamRecords: @unchecked Sendable {
  // Unchecked, because every method is called on the event loop that the records belong to.

  /// The likes that one stream has shown.
  struct Stream {
    let timeline: Int
    /// The id of the last event.
    fileprivate var last: UInt64?
    /// The number of likes that the last event shows as confirmed by the server.
    fileprivate var confirmedCount = 0
    /// The largest ``confirmedCount`` so far.
    fileprivate var newest = 0
    /// The number of likes that were shown, confirmed or not.
    fileprivate var likeCount = 0
  }

  private struct Like {
    let start: ContinuousClock.Instant
    /// The number of streams that don't show the like yet.
    var missing: Int
  }

  private var streams: [Stream] = []
  /// The likes of each timeline, in order.
  private var likes: [[Like]]
  /// The likes that the events of each timeline show, by event id.
  ///
  /// The streams of a timeline share its events, so each event is parsed only once.
  private var events: [[UInt64: ShownTimeline]]
  /// The number of pairs of a stream and a like that the stream doesn't show yet.
  private(set) var missingCount = 0
  /// The times from each like until the last stream of its timeline shows it.
  private(set) var latencies: [Duration] = []
  /// The number of streams that have received an event.
  private(set) var openStreams = 0
  /// The number of times at which a stream showed an older timeline after a newer one.
  private(set) var regressions = 0
  private(set) var failedStatus: Int?
  private(set) var eventCount = 0
  private(set) var byteCount = 0

  init(timelines: Int) {
    likes = Array(repeating: [], count: timelines)
    events = Array(repeating: [:], count: timelines)
  }

  /// Adds a stream.
  ///
  /// - Returns: Its number.
  func addStream(of timeline: Int) -> Int {
    streams.append(Stream(timeline: timeline))
    return streams.count - 1
  }

  /// Records a like that is about to be made, and that all open streams of its timeline must show.
  func recordLike(of timeline: Int, at start: ContinuousClock.Instant) {
    let count = streams.count { $0.timeline == timeline }
    likes[timeline].append(Like(start: start, missing: count))
    missingCount += count
  }

  /// Records an event of a stream.
  func record(_ event: EventParser.Event, of number: Int) {
    let timeline = streams[number].timeline
    let shown: ShownTimeline
    if let known = events[timeline][event.id] {
      shown = known
    } else {
      shown = ShownTimeline(event.content)
      events[timeline][event.id] = shown
    }
    eventCount += 1
    if streams[number].last == nil { openStreams += 1 }
    if shown.confirmedCount < streams[number].newest { regressions += 1 }
    streams[number].last = event.id
    streams[number].confirmedCount = shown.confirmedCount
    streams[number].newest = max(streams[number].newest, shown.confirmedCount)
    recordLikes(shown, of: number, in: timeline)
  }

  private func recordLikes(_ shown: ShownTimeline, of number: Int, in timeline: Int) {
    let shownBefore = streams[number].likeCount
    let count = shown.likeCount(after: shownBefore, ofMade: likes[timeline].count)
    guard count > shownBefore else { return }
    streams[number].likeCount = count
    missingCount -= count - shownBefore
    let now = ContinuousClock.now
    for like in shownBefore..<count {
      likes[timeline][like].missing -= 1
      if likes[timeline][like].missing == 0 { latencies.append(now - likes[timeline][like].start) }
    }
  }

  /// Records the bytes of events.
  func recordBytes(_ count: Int) {
    byteCount += count
  }

  /// Records the answer to a like.
  func recordAnswer(_ status: Int) {
    if status / 100 != 2 { failedStatus = status }
  }

  /// The number of streams that aren't up to date.
  ///
  /// A stream is up to date if its last event shows every like of the timeline as confirmed. The event must also be the
  /// last one of the most recently opened stream of the timeline.
  var outdatedCount: Int {
    var newest: [Int: UInt64] = [:]
    for stream in streams { newest[stream.timeline] = stream.last }
    return streams.count {
      $0.last == nil || $0.last != newest[$0.timeline] || $0.confirmedCount != likes[$0.timeline].count
    }
  }
}
