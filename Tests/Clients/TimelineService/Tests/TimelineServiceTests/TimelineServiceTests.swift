import AsyncHTTPClient
import DataStore
import Foundation
import GraphQLClient
import HTTPTypes
import Hummingbird
import HummingbirdTesting
import Moments
import MomentsTesting
import Multicast
import NIOCore
import NIOHTTP1
import Repository
import Testing

@testable import TimelineServer

@Suite(.timeLimit(.minutes(5))) struct TimelineServiceTests {
  private let server = DemonstrationServer()
  private let repo: MomentsRepo

  init() {
    repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()), getMomentsByUserIDSession: server,
      updateMomentLikeSession: server)
  }

  private func decode<Value: Decodable>(_ type: Value.Type, _ response: TestResponse) throws -> Value {
    try JSONDecoder().decode(type, from: Data(response.body.readableBytesView))
  }

  /// Runs the service until `body` returns, with a client that is connected to it.
  private func withClient(_ body: @Sendable (any TestClientProtocol) async throws -> Void) async throws {
    try await TimelineApplication.make(repo).test(.ahc(), body)
  }

  /// Sends a like of a moment in timeline 0, whose moments have their indices as ids.
  private func sendLike(
    isLiked: Bool, momentID: String, key: String, _ client: any TestClientProtocol
  ) async throws -> TestResponse {
    try await client.execute(
      uri: "/timelines/0/moments/\(momentID)/like", method: .post, headers: [.idempotencyKey: key],
      body: ByteBuffer(string: #"{"isLiked": \#(isLiked)}"#))
  }

  private struct Answer: Decodable, Equatable {
    let outcome: String
  }

  private struct Problem: Decodable {
    let status: Int
    let title: String
    let detail: String
  }

  private func expectProblem(_ status: HTTPResponse.Status, _ detailPart: String, _ response: TestResponse) throws {
    #expect(response.status == status)
    #expect(response.headers[.contentType] == "application/problem+json")
    let problem = try decode(Problem.self, response)
    #expect(problem.status == status.code)
    #expect(problem.detail.contains(detailPart), "\(problem.detail)")
  }

  // MARK: - Timelines

  @Test func `A timeline is fetched, and the stored one is served while the server can't be reached`() async throws {
    try await withClient { client in
      let first = try await client.execute(uri: "/timelines/0", method: .get)
      #expect(first.status == .ok)
      let timeline = try decode(MomentsDetails.self, first)
      #expect(timeline.userDetails.name == "Jake Lin")
      await server.setOnline(false)
      let second = try await client.execute(uri: "/timelines/0", method: .get)
      #expect(try decode(MomentsDetails.self, second) == timeline)
      let notStored = try await client.execute(uri: "/timelines/1", method: .get)
      try expectProblem(.badGateway, "could not be reached", notStored)
    }
  }

  @Test func `A client whose fetch fails gets the timeline of a concurrent fetch that succeeds`() async throws {
    let (pageRequests, pageRequest) = AsyncStream.makeStream(of: Void.self)
    let (releases, release) = AsyncStream.makeStream(of: Void.self)
    let timeline = try await server.getMoments(userID: "0")
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()),
      getMomentsByUserIDSession: PagedSession(
        getPage: {
          pageRequest.yield()
          for await _ in releases { break }
          return timeline
        },
        getCompleteTimeline: { () throws(APISessionError) in throw .transport(URLError(.notConnectedToInternet)) }),
      updateMomentLikeSession: server)
    let events = repo.events.subscribe()
    try await TimelineApplication.make(repo).test(.ahc()) { client in
      // The reload fetches a page, and the service fetches a complete timeline for its client.
      async let reload: Void = repo.reloadMoments(userID: "0")
      for await _ in pageRequests { break }
      async let response = client.execute(uri: "/timelines/0", method: .get)
      for await event in events {
        if case .requestFailed = event { break }
      }
      release.yield()
      try await reload
      #expect(try await response.status == .ok)
      #expect(try decode(MomentsDetails.self, try await response) == timeline)
    }
  }

  @Test func `The load state tells whether a timeline is stored, except while a request is in flight`() {
    let loaded = LoadedValue(MomentsDetails.fixture(), savedAt: Date())
    let error = MomentsRepoError.session(.timedOut)
    #expect(TimelineRoute.isStored(in: .idle) == false)
    #expect(TimelineRoute.isStored(in: .loading(previous: nil)) == nil)
    #expect(TimelineRoute.isStored(in: .loading(previous: loaded)) == nil)
    #expect(TimelineRoute.isStored(in: .loaded(loaded)) == true)
    #expect(TimelineRoute.isStored(in: .failed(error, previous: nil)) == false)
    #expect(TimelineRoute.isStored(in: .failed(error, previous: loaded)) == true)
  }

  @Test func `An unknown user or path, a long user id and a wrong method are each answered with a reason`() async throws
  {
    try await withClient { client in
      try expectProblem(.notFound, "9", try await client.execute(uri: "/timelines/9", method: .get))
      try expectProblem(.notFound, "9", try await client.execute(uri: "/timelines/9/events", method: .get))
      for path in ["/nothing", "/timelines", "/timelines/0/nothing", "/health/nothing"] {
        try expectProblem(.notFound, path, try await client.execute(uri: path, method: .get))
      }
      // No route answers TRACE, not even with status 405, so the request counts as one with an unknown path.
      try expectProblem(.notFound, "/timelines/0", try await client.execute(uri: "/timelines/0", method: .trace))
      let longUserID = String(repeating: "x", count: 5_000)
      let tooLong = try await client.execute(uri: "/timelines/\(longUserID)", method: .get)
      try expectProblem(.badRequest, "4096 bytes", tooLong)
      let wrongMethod = try await client.execute(uri: "/timelines/0", method: .delete)
      try expectProblem(.methodNotAllowed, "Use GET", wrongMethod)
      #expect(wrongMethod.headers[.allow] == "GET")
    }
  }

  // MARK: - Likes

  @Test func `A like that is repeated under its key is made once, and another like can't use the key`() async throws {
    try await withClient { client in
      let first = try await sendLike(isLiked: true, momentID: "1", key: "a", client)
      #expect(first.status == .ok)
      #expect(try decode(Answer.self, first) == Answer(outcome: "confirmed"))
      #expect(try await sendLike(isLiked: false, momentID: "1", key: "b", client).status == .ok)
      // The repetition of the first like comes late, and changes nothing.
      #expect(try await sendLike(isLiked: true, momentID: "1", key: "a", client).status == .ok)
      #expect(try await server.getMoments(userID: "0").moments[1].isLiked == false)
      try expectProblem(
        .unprocessableContent, "another request",
        try await sendLike(isLiked: false, momentID: "1", key: "a", client))
    }
  }

  @Test func `A like waits while the server can't be reached, and is sent by a retry`() async throws {
    try await withClient { client in
      _ = try await client.execute(uri: "/timelines/0", method: .get)
      await server.setOnline(false)
      let response = try await sendLike(isLiked: true, momentID: "1", key: "a", client)
      #expect(response.status == .accepted)
      #expect(try decode(Answer.self, response) == Answer(outcome: "queued"))
      let health = try await client.execute(uri: "/health", method: .get)
      #expect(String(buffer: health.body).contains(#""waitingLikes":1"#))
      await server.setOnline(true)
      await repo.retryLikes()
      for await likes in repo.pendingLikes(userID: "0") where likes.isEmpty { break }
      #expect(try await server.getMoments(userID: "0").moments[1].isLiked == true)
    }
  }

  @Test func `An invalid like is refused, and changes nothing`() async throws {
    let before = try await server.getMoments(userID: "0")
    try await withClient { client in
      let address = "/timelines/0/moments/1/like"
      try expectProblem(
        .badRequest, "Idempotency-Key",
        try await client.execute(uri: address, method: .post, body: ByteBuffer(string: "{}")))
      for body in ["", "{", "[]", #"{"isLiked": 1}"#, "\u{0}"] {
        try expectProblem(
          .badRequest, "isLiked",
          try await client.execute(
            uri: address, method: .post, headers: [.idempotencyKey: "a"], body: ByteBuffer(string: body)))
      }
      try expectProblem(
        .contentTooLarge, "4096",
        try await client.execute(
          uri: address, method: .post, headers: [.idempotencyKey: "a"],
          body: ByteBuffer(repeating: UInt8(ascii: " "), count: 5_000)))
      try expectProblem(.notFound, "77", try await sendLike(isLiked: true, momentID: "77", key: "a", client))
    }
    #expect(try await server.getMoments(userID: "0") == before)
  }

  // MARK: - Events

  private struct Event: Decodable {
    let timeline: MomentsDetails
    let waiting: [String]
  }

  /// A stream of the service, whose events are read one by one.
  private struct EventStream {
    private var chunks: HTTPClientResponse.Body.AsyncIterator
    private var text = ""

    init(_ client: any TestClientProtocol, after id: String? = nil) async throws {
      var request = HTTPClientRequest(url: "http://localhost:\(client.port!)/timelines/0/events")
      if let id { request.headers.add(name: "Last-Event-ID", value: id) }
      let response = try await HTTPClient.shared.execute(request, timeout: .seconds(60))
      #expect(response.status == .ok)
      #expect(response.headers.first(name: "Content-Type") == "text/event-stream")
      chunks = response.body.makeAsyncIterator()
    }

    mutating func next() async throws -> (id: String, event: Event)? {
      while true {
        while let end = text.range(of: "\n\n") {
          let fields = text[..<end.lowerBound].split(separator: "\n")
          text = String(text[end.upperBound...])
          guard fields.count == 2, fields[0].hasPrefix("id: "), fields[1].hasPrefix("data: ") else { continue }
          let event = try JSONDecoder().decode(Event.self, from: Data(fields[1].dropFirst(6).utf8))
          return (String(fields[0].dropFirst(4)), event)
        }
        guard let chunk = try await chunks.next() else { return nil }
        text += String(buffer: chunk)
      }
    }
  }

  @Test func `Every stream shows a client's like, and that the like waits to be sent`() async throws {
    try await withClient { client in
      var (first, second) = (try await EventStream(client), try await EventStream(client))
      let shown = try await first.next()
      #expect(shown?.event.timeline.moments[1].isLiked == false)
      #expect(try await second.next()?.id == shown?.id)
      await server.setOnline(false)
      _ = try await sendLike(isLiked: true, momentID: "1", key: "a", client)
      for isFirst in [true, false] {
        var event = try #require(isFirst ? try await first.next() : try await second.next()).event
        // The like and its place in `waiting` may be in separate events.
        while event.waiting.isEmpty || event.timeline.moments[1].isLiked == false {
          event = try #require(isFirst ? try await first.next() : try await second.next()).event
        }
        #expect(event.waiting == ["1"])
      }
    }
  }

  @Test func `Frequent changes of a timeline cause few events, the last with the newest timeline`() async throws {
    try await withClient { client in
      var events = try await EventStream(client)
      let first = try #require(try await events.next()).event
      let lastUnlikedIndex = try #require(first.timeline.moments.lastIndex { $0.id != "1" && $0.isLiked == false })
      let start = ContinuousClock.now
      for number in 0..<200 {
        try await repo.updateLike(isLiked: number.isMultiple(of: 2), momentID: "1", fromUserID: "0")
      }
      try await repo.updateLike(isLiked: true, momentID: first.timeline.moments[lastUnlikedIndex].id, fromUserID: "0")
      var eventCount = 0
      while let (_, event) = try await events.next() {
        eventCount += 1
        if event.timeline.moments[lastUnlikedIndex].isLiked == true, event.waiting.isEmpty { break }
      }
      // The first of these events comes at once, and each later one after at least an interval. One more event may have
      // been sent before the first change.
      #expect(eventCount <= Int((.now - start) / TimelineFeed.minimumEventInterval) + 2)
    }
  }

  @Test func `A stream doesn't begin with the event that Last-Event-ID names, and ignores an id that no event has`()
    async throws
  {
    try await withClient { client in
      var first = try await EventStream(client)
      let id = try #require(try await first.next()).id
      var second = try await EventStream(client, after: id)
      _ = try await sendLike(isLiked: true, momentID: "1", key: "a", client)
      let next = try #require(try await second.next())
      #expect(next.id != id)
      for hostileID in ["", "0", "\(UInt64.max)", String(repeating: "f", count: 4_000), "☃", "-1' OR 1"] {
        var events = try await EventStream(client, after: hostileID)
        #expect(try await events.next() != nil)
      }
    }
  }

  @Test func `Streams end when the service stops`() async throws {
    let (streams, continuation) = AsyncStream<EventStream>.makeStream()
    try await withClient { client in
      var events = try await EventStream(client)
      _ = try await events.next()
      continuation.yield(events)
    }
    continuation.finish()
    for await var events in streams {
      while try await events.next() != nil {}
    }
  }

  // MARK: - Page and metrics

  @Test func `The page refers to no other server`() async throws {
    try await withClient { client in
      let page = try await client.execute(uri: "/", method: .get)
      #expect(page.status == .ok)
      #expect(page.headers[.contentType] == "text/html; charset=utf-8")
      #expect(!String(buffer: page.body).contains("://"))
    }
  }

  @Test func `Requests are counted by route, and those with unknown paths together`() async throws {
    try await withClient { client in
      _ = try await client.execute(uri: "/timelines/0", method: .get)
      _ = try await client.execute(uri: "/timelines/1", method: .get)
      _ = try await client.execute(uri: "/a", method: .get)
      _ = try await client.execute(uri: "/timelines/0/b", method: .put)
      let text = String(buffer: try await client.execute(uri: "/metrics", method: .get).body)
      #expect(text.contains(#"http_requests_total{method="GET",route="/timelines/{user}",status="200"} 2"#), "\(text)")
      // All requests with unknown paths count as GET requests, even the PUT request.
      #expect(text.contains(#"http_requests_total{method="GET",route="none",status="404"} 2"#))
      #expect(text.contains("moments_waiting_likes 0\n"))
    }
  }
}

/// A session that gets pages from one closure, and complete timelines from another.
private struct PagedSession: GetMomentsByUserIDSessionType {
  let getPage: @Sendable () async throws(APISessionError) -> MomentsDetails
  let getCompleteTimeline: @Sendable () async throws(APISessionError) -> MomentsDetails

  func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails { try await getCompleteTimeline() }

  func getMoments(userID: String, first: Int, after: String?) async throws(APISessionError) -> MomentsDetails {
    try await getPage()
  }
}
