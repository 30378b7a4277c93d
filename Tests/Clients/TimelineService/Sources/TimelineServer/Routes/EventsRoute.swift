internal import HTTPTypes
internal import Hummingbird
internal import Moments
internal import Multicast
internal import NIOCore
internal import Synchronization

/// `GET /timelines/{user}/events`: server-sent events, each with the whole timeline, beginning with the newest one.
///
/// A browser that reconnects names the event that it shows in `Last-Event-ID`. It gets no event until there is another
/// one.
final class EventsRoute: Sendable {
  private struct OpenFeed {
    let feed: TimelineFeed
    var browserCount = 0
  }

  private let repo: MomentsRepo
  private let feeds = Mutex<[String: OpenFeed]>([:])

  init(repo: MomentsRepo) {
    self.repo = repo
  }

  func add(to router: Router<BasicRequestContext>) {
    router.serve(.get, "timelines/:user/events") { request, context in
      let userID = try context.parameters.require("user")
      try await self.checkExists(userID)
      let last = request.headers[.lastEventID]
      return Response(
        status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"],
        body: ResponseBody { writer in
          let feed = self.open(userID)
          defer { self.close(userID) }
          try await Self.write(feed, after: last, to: &writer)
          try await writer.finish(nil)
        })
    }
  }

  /// Fetches a timeline, unless a browser shows it already.
  ///
  /// If the server can't be reached, the stream begins when it can.
  ///
  /// - Throws: A `MomentsRepoError` if the server has no such user, or if the store fails.
  private func checkExists(_ userID: String) async throws {
    if feeds.withLock({ $0[userID] != nil }) { return }
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
      var open = feeds[userID] ?? OpenFeed(feed: TimelineFeed(of: userID, in: repo))
      open.browserCount += 1
      feeds[userID] = open
      return open.feed
    }
  }

  private func close(_ userID: String) {
    let closed = feeds.withLock { feeds -> TimelineFeed? in
      feeds[userID]?.browserCount -= 1
      return feeds[userID]?.browserCount == 0 ? feeds.removeValue(forKey: userID)?.feed : nil
    }
    extendLifetime(closed)
  }

  /// Writes events until the browser leaves or the service stops.
  private static func write(
    _ feed: TimelineFeed, after last: String?, to writer: inout any ResponseBodyWriter
  ) async throws {
    var last = last
    // Sends the head of the response now, because the first event may be sent much later.
    try await writer.write(ByteBuffer(string: "retry: 1000\n\n"))
    let frames = feed.frames.subscribe()
    var beats = 0
    for await frame in frames {
      if let event = frame.event, event.id != last {
        last = event.id
        try await writer.write(event.bytes)
      } else if frame.beats != beats {
        try await writer.write(ByteBuffer(string: ":\n\n"))
      }
      beats = frame.beats
    }
  }
}

extension HTTPField.Name {
  static let lastEventID = HTTPField.Name("Last-Event-ID")!
}
