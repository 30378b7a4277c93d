internal import Hummingbird
internal import Logging
internal import Moments
internal import Multicast

/// The events of one timeline, made once for all browsers that show it.
///
/// It follows the repository, and fetches what isn't fresh any more, until it is released.
final class TimelineFeed: Sendable {
  /// What there is to send.
  struct Frame: Sendable {
    fileprivate(set) var event: TimelineEvent?
    /// Counts the times at which a browser, and what is between, should hear that the service is there.
    fileprivate(set) var beats = 0
  }

  private static let heartbeat = Duration.seconds(15)

  private let newest = CurrentValueRelay(Frame())
  private let following: Task<Void, Never>

  init(of userID: String, in repo: MomentsRepo) {
    let (timelines, likes) = (repo.momentsDetails(userID: userID), repo.pendingLikes(userID: userID))
    following = Task { [newest] in
      await withDiscardingTaskGroup { group in
        let content = CurrentValueRelay<(timeline: MomentsDetails?, waiting: [String])>((nil, []))
        group.addTask {
          for await timeline in timelines.buffering(.latest) { content.update { $0.timeline = timeline } }
        }
        group.addTask {
          for await likes in likes { content.update { $0.waiting = Array(likes.keys) } }
        }
        group.addTask {
          for await (timeline, waiting) in content.stream {
            if let event = timeline.flatMap({ Self.event($0, waiting) }) { newest.update { $0.event = event } }
          }
        }
        while !Task.isCancelled {
          // A failure shows in the log and the metrics of the repository, and the next beat tries again.
          try? await repo.refreshMoments(userID: userID)
          try? await Task.sleep(for: Self.heartbeat)
          newest.update { $0.beats += 1 }
        }
      }
    }
  }

  deinit {
    following.cancel()
  }

  private static func event(_ timeline: MomentsDetails, _ waiting: [String]) -> TimelineEvent? {
    do {
      return try TimelineEvent(timeline, waiting: waiting)
    } catch {
      Logger(label: "TimelineFeed").error("The timeline can't be encoded: \(error)")
      return nil
    }
  }

  /// The newest frame, then the newest after each change: a slow browser misses those between, and delays no other one.
  var frames: MulticastStream<Frame, Never> { newest.stream.buffering(.latest) }
}
