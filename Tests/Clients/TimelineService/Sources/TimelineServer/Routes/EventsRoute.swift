internal import HTTPTypes
internal import Hummingbird
internal import Moments
internal import Multicast
internal import NIOCore
internal import Synchronization

/// `GET /timelines/{user}/events`: the newest server-sent event, then the newest one after each change, each with the
/// whole timeline.
///
/// A browser that reconnects sends `Last-Event-ID`, which is the id of the event that it shows. It gets no event until
/// there is a different one.
///
/// Two functions aren't inlined, which keeps the memory of each open stream small; see ``TimelineRouter``.
final class EventsRoute: Sendable {
  private struct OpenFeed {
    let feed: TimelineFeed
    var browserCount = 0
  }

  /// The event that one browser shows.
  private struct ShownEvent {
    /// The id of the event that was sent last; before the first event, the browser's `Last-Event-ID`.
    var id: String?
    /// The ``TimelineFeed/Frame/beats`` of the last frame.
    var beats = 0

    /// Records a frame.
    ///
    /// - Returns: The event if the browser doesn't show it yet, otherwise a comment if a heartbeat is due, otherwise
    ///   `nil`.
    @inline(never)
    mutating func receive(_ frame: TimelineFeed.Frame) -> ByteBuffer? {
      defer { beats = frame.beats }
      if let event = frame.event, event.id != id {
        id = event.id
        return event.bytes
      }
      return frame.beats == beats ? nil : ByteBuffer(string: ":\n\n")
    }
  }

  private let repo: MomentsRepo
  private let feeds = Mutex<[String: OpenFeed]>([:])

  init(repo: MomentsRepo) {
    self.repo = repo
  }

  func add(to router: TimelineRouter) {
    router.serve(.get, "timelines/:user/events") { request, context in
      let userID = try context.parameters.require("user")
      // If another browser already shows the timeline, the timeline's feed fetches it.
      if !self.isOpen(userID) { try await self.fetch(userID) }
      let lastEventID = request.headers[.lastEventID]
      return Response(
        status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
        body: ResponseBody { writer in
          let feed = self.open(userID)
          defer { self.close(userID) }
          // Sends the head of the response now, because the first event may be sent much later.
          try await writer.write(ByteBuffer(string: "retry: 1000\n\n"))
          var shown = ShownEvent(id: lastEventID)
          for await frame in feed.frames.subscribe() {
            if let bytes = shown.receive(frame) { try await writer.write(bytes) }
          }
          try await writer.finish(nil)
        })
    }
  }

  private func isOpen(_ userID: String) -> Bool { feeds.withLock { $0[userID] != nil } }

  /// Fetches a timeline before the response begins, so that the response to a failure has an error status.
  ///
  /// If the request fails without GraphQL errors, for example because the server can't be reached, nothing is thrown.
  /// The stream then begins with the stored timeline, if there is one, and the feed tries again.
  ///
  /// - Throws: A `MomentsRepoError` for every other failure, such as an unknown user.
  @inline(never)
  private func fetch(_ userID: String) async throws {
    do throws(MomentsRepoError) {
      try await repo.refreshMoments(userID: userID)
    } catch {
      switch error {
      case .session(.graphQL), .store, .signedOut, .queueFull, .cancelled: throw error
      case .session: break
      }
    }
  }

  private func open(_ userID: String) -> TimelineFeed {
    feeds.withLock { feeds in
      var openFeed = feeds[userID] ?? OpenFeed(feed: TimelineFeed(of: userID, in: repo))
      openFeed.browserCount += 1
      feeds[userID] = openFeed
      return openFeed.feed
    }
  }

  private func close(_ userID: String) {
    let closedFeed = feeds.withLock { feeds -> TimelineFeed? in
      feeds[userID]?.browserCount -= 1
      return feeds[userID]?.browserCount == 0 ? feeds.removeValue(forKey: userID)?.feed : nil
    }
    // Keeps the feed until here, so that it isn't released while the lock is held.
    extendLifetime(closedFeed)
  }
}

extension HTTPField.Name {
  static let lastEventID = HTTPField.Name("Last-Event-ID")!
}
