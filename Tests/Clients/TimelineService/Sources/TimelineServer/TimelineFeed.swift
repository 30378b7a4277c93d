internal import Hummingbird
internal import Logging
internal import Moments
internal import Multicast
internal import ServiceLifecycle

/// The events of one timeline, encoded once for all browsers that show it.
///
/// Observes the repository and fetches the timeline when it is stale, until the feed is released. ``frames`` finishes
/// when the service shuts down.
final class TimelineFeed: Sendable {
  /// The newest event, and the number of heartbeats.
  struct Frame: Sendable {
    fileprivate(set) var event: TimelineEvent?
    /// The number of heartbeats so far.
    ///
    /// At each heartbeat, the event stream to each browser carries an event or an empty comment, so that no proxy
    /// closes the connection as idle.
    fileprivate(set) var beats = 0
  }

  private static let heartbeatInterval = Duration.seconds(15)
  /// The minimum time between two events.
  ///
  /// A timeline may change hundreds of times per second, and each event is written once for each browser.
  static let minimumEventInterval = Duration.milliseconds(25)

  private let newestFrame = CurrentValueChannel<Frame, Never>(Frame())
  private let observation: Task<Void, Never>

  init(of userID: String, in repo: MomentsRepo) {
    let (timelines, pendingLikes) = (repo.momentsDetails(userID: userID), repo.pendingLikes(userID: userID))
    observation = Task { [newestFrame] in
      await withDiscardingTaskGroup { group in
        group.addTask {
          // Throws if the feed is released first. Finishing the channel is then harmless: it has no subscribers.
          try? await gracefulShutdown()
          newestFrame.finish()
        }
        let content = CurrentValueRelay<(timeline: MomentsDetails?, waiting: [String])>((nil, []))
        group.addTask {
          for await timeline in timelines.buffering(.latest) { content.update { $0.timeline = timeline } }
        }
        group.addTask {
          for await likes in pendingLikes { content.update { $0.waiting = Array(likes.keys) } }
        }
        group.addTask {
          for await _ in content.stream {
            // A like changes the timeline and the list of waiting likes one after the other. An event between the two
            // would be correct, but superfluous.
            await Task.yield()
            let (timeline, waiting) = content.value
            guard let timeline, let event = Self.event(timeline, waiting), event != newestFrame.value.event else {
              continue
            }
            newestFrame.update { $0.event = event }
            try? await Task.sleep(for: Self.minimumEventInterval)
          }
        }
        while !Task.isCancelled {
          // The next heartbeat tries again after a failure.
          try? await repo.refreshMoments(userID: userID)
          try? await Task.sleep(for: Self.heartbeatInterval)
          newestFrame.update { $0.beats += 1 }
        }
      }
    }
  }

  deinit {
    observation.cancel()
  }

  private static func event(_ timeline: MomentsDetails, _ waiting: [String]) -> TimelineEvent? {
    do {
      return try TimelineEvent(timeline, waiting: waiting)
    } catch {
      Logger(label: "TimelineFeed").error("The timeline can't be encoded: \(error)")
      return nil
    }
  }

  /// The newest frame, then the newest one after each change.
  ///
  /// A slow browser skips frames and delays no other browser.
  var frames: MulticastStream<Frame, Never> { newestFrame.stream.buffering(.latest) }
}
