/// The likes that the event streams of a service have shown.
///
/// Belongs to one event loop and is used on it only, so it needs no lock.
final class StreamRecords: @unchecked Sendable {
  // Unchecked, because every method is called on the event loop that the records belong to.

  /// The likes that one stream has shown.
  struct Stream {
    let timeline: Int
    /// The id of the last event.
    fileprivate var lastEventID: UInt64?
    /// The number of likes that the last event shows as confirmed by the server.
    fileprivate var confirmedCount = 0
    /// The largest ``confirmedCount`` so far.
    fileprivate var largestConfirmedCount = 0
    /// The number of likes that were shown, confirmed or not.
    fileprivate var likeCount = 0
  }

  private struct Like {
    let start: ContinuousClock.Instant
    /// The number of streams that don't show the like yet.
    var missingStreamCount: Int
  }

  private var streams: [Stream] = []
  /// The likes of each timeline, in order.
  private var likes: [[Like]]
  /// The likes that the events of each timeline show, by event id.
  ///
  /// The streams of a timeline share its events, so each event is parsed only once.
  private var shownTimelines: [[UInt64: ShownTimeline]]
  /// The number of pairs of a stream and a like that the stream doesn't show yet.
  ///
  /// Valid only until a stream is added after a like.
  private(set) var missingCount = 0
  /// The times from each like until the last stream of its timeline shows it.
  private(set) var latencies: [Duration] = []
  /// The number of streams that have received an event.
  private(set) var openStreamCount = 0
  /// The number of times at which a stream showed an older timeline after a newer one.
  private(set) var regressionCount = 0
  /// The status of the last answer to a like that failed.
  private(set) var failedStatus: Int?
  private(set) var eventCount = 0
  private(set) var byteCount = 0

  init(timelines: Int) {
    likes = Array(repeating: [], count: timelines)
    shownTimelines = Array(repeating: [:], count: timelines)
  }

  /// Adds a stream.
  ///
  /// - Returns: The stream's number.
  func addStream(of timeline: Int) -> Int {
    streams.append(Stream(timeline: timeline))
    return streams.count - 1
  }

  /// Records a like that is about to be made, and that all streams of its timeline must show.
  func recordLike(of timeline: Int, at start: ContinuousClock.Instant) {
    let streamCount = streams.count { $0.timeline == timeline }
    likes[timeline].append(Like(start: start, missingStreamCount: streamCount))
    missingCount += streamCount
  }

  /// Records an event of a stream.
  func record(_ event: EventParser.Event, of streamNumber: Int) {
    let timeline = streams[streamNumber].timeline
    let shown: ShownTimeline
    if let known = shownTimelines[timeline][event.id] {
      shown = known
    } else {
      shown = ShownTimeline(event.content)
      shownTimelines[timeline][event.id] = shown
    }
    eventCount += 1
    if streams[streamNumber].lastEventID == nil { openStreamCount += 1 }
    if shown.confirmedCount < streams[streamNumber].largestConfirmedCount { regressionCount += 1 }
    streams[streamNumber].lastEventID = event.id
    streams[streamNumber].confirmedCount = shown.confirmedCount
    streams[streamNumber].largestConfirmedCount = max(streams[streamNumber].largestConfirmedCount, shown.confirmedCount)
    recordShownLikes(shown, of: streamNumber, in: timeline)
  }

  private func recordShownLikes(_ shown: ShownTimeline, of streamNumber: Int, in timeline: Int) {
    let shownBefore = streams[streamNumber].likeCount
    let count = shown.likeCount(after: shownBefore, outOf: likes[timeline].count)
    guard count > shownBefore else { return }
    streams[streamNumber].likeCount = count
    missingCount -= count - shownBefore
    let now = ContinuousClock.now
    for index in shownBefore..<count {
      likes[timeline][index].missingStreamCount -= 1
      let like = likes[timeline][index]
      if like.missingStreamCount == 0 { latencies.append(now - like.start) }
    }
  }

  /// Records that a stream has received bytes.
  func recordBytes(count: Int) {
    byteCount += count
  }

  /// Records the answer to a like.
  func recordAnswer(_ status: Int) {
    if status / 100 != 2 { failedStatus = status }
  }

  /// The number of streams that aren't up to date.
  ///
  /// A stream is up to date if its last event shows every like of the timeline as confirmed. Because the streams of a
  /// timeline share its events, that event must also have the same id as the last event of the reference stream, which
  /// is the stream that was added to the timeline last.
  var outdatedCount: Int {
    var referenceEventIDs: [Int: UInt64] = [:]
    for stream in streams { referenceEventIDs[stream.timeline] = stream.lastEventID }
    return streams.count {
      $0.lastEventID == nil || $0.lastEventID != referenceEventIDs[$0.timeline]
        || $0.confirmedCount != likes[$0.timeline].count
    }
  }
}
