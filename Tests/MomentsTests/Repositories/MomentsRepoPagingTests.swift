import DataStore
import Foundation
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct MomentsRepoPagingTests {
  private typealias Request = PagedTimeline.Request

  private let store = PersistentDataStore(InMemoryStore())

  private func makeRepo(for server: PagedTimeline, pageSize: Int = 3) -> MomentsRepo {
    MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: server, updateMomentLikeSession: server,
      pageSize: pageSize)
  }

  /// Returns the ids of the stored moments, and whether there is a next page.
  private func storedIDsAndHasNextPage() async throws -> (ids: [String], hasNextPage: Bool?) {
    let details = try await store.momentsDetails(userID: "0")?.value
    return (details?.moments.map(\.id) ?? [], details?.pageInfo?.hasNextPage)
  }

  private static func ids(_ range: ClosedRange<Int>) -> [String] { range.map(String.init) }

  // MARK: - Loading more

  @Test func `Pages are appended one after another, and no request follows the last page`() async throws {
    let server = PagedTimeline(Self.ids(0...7))
    let repo = makeRepo(for: server)
    let observer = repo.momentsDetails(userID: "0").subscribe()
    try await repo.reloadMoments(userID: "0")
    for _ in 0..<4 { try await repo.loadMoreMoments(userID: "0") }
    #expect(
      await observer.first(3).map { $0.moments.map(\.id) }
        == [Self.ids(0...2), Self.ids(0...5), Self.ids(0...7)])
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...7), false))
    #expect(
      server.requests == [
        Request(first: 3), Request(first: 3, after: "2"), Request(first: 3, after: "5"),
      ])
  }

  @Test func `If no timeline is stored, loading more fetches the newest page`() async throws {
    let server = PagedTimeline(Self.ids(0...7))
    try await makeRepo(for: server).loadMoreMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...2), true))
    #expect(server.requests == [Request(first: 3)])
  }

  @Test func `Neither a complete timeline nor the reply to a like has a next page`() async throws {
    let server = PagedTimeline(Self.ids(0...7))
    let repo = makeRepo(for: server)
    try await repo.getMoments(userID: "0")
    try await repo.loadMoreMoments(userID: "0")
    #expect(server.requests == [Request()])
    try await store.removeMomentsDetails(userID: "0")
    try await repo.reloadMoments(userID: "0")
    #expect(try await repo.updateLike(isLiked: true, momentID: "7", fromUserID: "0") == .confirmed)
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...7), false))
    try await repo.loadMoreMoments(userID: "0")
    #expect(server.requests == [Request(), Request(first: 3)])
  }

  @Test func `After a page has failed, the next call fetches it again, and the stored moments stay`() async throws {
    let isOffline = Lock(false)
    let server = PagedTimeline(
      Self.ids(0...7),
      onRequest: { _ throws(APISessionError) in if isOffline.withLock({ $0 }) { throw .timedOut } })
    let repo = makeRepo(for: server)
    try await repo.reloadMoments(userID: "0")
    isOffline.withLock { $0 = true }
    await #expect(throws: MomentsRepoError.session(.timedOut)) { try await repo.loadMoreMoments(userID: "0") }
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...2), true))
    for await state in repo.loadState(userID: "0") {
      #expect(state.failure == .session(.timedOut))
      break
    }
    isOffline.withLock { $0 = false }
    try await repo.loadMoreMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...5), true))
    #expect(server.requests.map(\.after) == [nil, "2", "2"])
  }

  @Test func `Callers that fetch the same next page share a request`() async throws {
    let gate = Gate()
    let server = PagedTimeline(
      Self.ids(0...7), onRequest: { request throws(APISessionError) in if request.after != nil { await gate.pass() } })
    let repo = makeRepo(for: server)
    try await repo.reloadMoments(userID: "0")
    let callers = (0..<5).map { _ in Task { try await repo.loadMoreMoments(userID: "0") } }
    for await event in repo.events where event == .requestJoined(key: "0 (next page)", callers: 5) { break }
    gate.open()
    for caller in callers { try await caller.value }
    #expect(server.requests.map(\.after) == [nil, "2"])
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...5), true))
  }

  @Test func `Moments inserted at the head while a page loads cause neither a gap nor a duplicate`() async throws {
    let gate = Gate()
    let server = PagedTimeline(
      Self.ids(0...7), onRequest: { request throws(APISessionError) in if request.after != nil { await gate.pass() } })
    let repo = makeRepo(for: server)
    try await repo.reloadMoments(userID: "0")
    let pageLoad = Task { try await repo.loadMoreMoments(userID: "0") }
    await gate.arrivals()
    server.insert("new")
    gate.open()
    try await pageLoad.value
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...5), true))
    try await repo.reloadMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (["new"] + Self.ids(0...5), true))
  }

  // MARK: - Reloading

  @Test func `The newest page is joined to the stored moments if it overlaps them`() async throws {
    let server = PagedTimeline(Self.ids(0...7))
    let repo = makeRepo(for: server)
    try await repo.reloadMoments(userID: "0")
    try await repo.loadMoreMoments(userID: "0")
    server.insert("a")
    server.insert("b")
    try await repo.reloadMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (["b", "a"] + Self.ids(0...5), true))
    try await repo.loadMoreMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (["b", "a"] + Self.ids(0...7), false))
    #expect(server.requests.last == Request(first: 3, after: "5"))
  }

  @Test func `The stored moments are dropped if the newest page doesn't overlap them, so there is no gap`()
    async throws
  {
    let server = PagedTimeline(Self.ids(0...7))
    let repo = makeRepo(for: server)
    try await repo.reloadMoments(userID: "0")
    for id in ["a", "b", "c", "d"] { server.insert(id) }
    try await repo.reloadMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (["d", "c", "b"], true))
    try await repo.loadMoreMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (["d", "c", "b", "a", "0", "1"], true))
  }

  @Test func `An arriving page is joined to the timeline that another process saved in the meantime`() async throws {
    let gate = Gate()
    let server = PagedTimeline(Self.ids(0...7), onRequest: { _ in await gate.pass() })
    let repo = makeRepo(for: server)
    let reload = Task { try await repo.reloadMoments(userID: "0") }
    await gate.arrivals()
    // Simulates a save by another process.
    var details = MomentsDetails.fixture(momentIDs: Self.ids(2...4), likedMomentIDs: ["4"])
    details.pageInfo = .init(endCursor: "4", hasNextPage: true)
    try await store.save(momentsDetails: details, userID: "0")
    gate.open()
    try await reload.value
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...4), true))
    #expect(try await store.momentsDetails(userID: "0")?.value.moments.last?.isLiked == true)
  }

  @Test func `A page that no longer continues the stored timeline is replaced by the page after that timeline's end`()
    async throws
  {
    let gate = Gate()
    let server = PagedTimeline(
      Self.ids(0...7), onRequest: { request throws(APISessionError) in if request.after == "2" { await gate.pass() } })
    let repo = makeRepo(for: server)
    try await repo.reloadMoments(userID: "0")
    let pageLoad = Task { try await repo.loadMoreMoments(userID: "0") }
    await gate.arrivals()
    var details = MomentsDetails.fixture(momentIDs: Self.ids(0...1))
    details.pageInfo = .init(endCursor: "1", hasNextPage: true)
    try await store.save(momentsDetails: details, userID: "0")
    gate.open()
    try await pageLoad.value
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...4), true))
    #expect(server.requests.map(\.after) == [nil, "2", "1"])
    for await event in repo.events where event == .replyDiscarded(key: "0 (next page)") { break }
  }

  @Test func `isLoading stays true until both of two concurrent loads have ended`() async throws {
    let gate = Gate()
    let server = PagedTimeline(
      Self.ids(0...7), onRequest: { request throws(APISessionError) in if request.after != nil { await gate.pass() } })
    let repo = makeRepo(for: server)
    try await repo.reloadMoments(userID: "0")
    let pageLoad = Task { try await repo.loadMoreMoments(userID: "0") }
    await gate.arrivals()
    try await repo.reloadMoments(userID: "0")
    for await state in repo.loadState(userID: "0") {
      #expect(state.isLoading)
      break
    }
    gate.open()
    try await pageLoad.value
    for await state in repo.loadState(userID: "0") {
      #expect(!state.isLoading)
      #expect(state.value?.moments.map(\.id) == Self.ids(0...5))
      break
    }
  }

  // MARK: - Refused pages

  @Test func `Once the server has refused a next page, paging continues only after a reload`() async throws {
    let server = PagedTimeline(Self.ids(0...8))
    let repo = makeRepo(for: server)
    try await repo.reloadMoments(userID: "0")
    try await repo.loadMoreMoments(userID: "0")
    server.remove("5")
    for _ in 0..<2 {
      await #expect(throws: MomentsRepoError.session(PagedTimeline.refusal(of: "5"))) {
        try await repo.loadMoreMoments(userID: "0")
      }
    }
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...5), true))
    // The reload fetches as many moments as are stored, because the stored ones can't be continued.
    try await repo.reloadMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...4) + ["6"], true))
    // The refusal has no further effect.
    server.insert("new")
    try await repo.reloadMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (["new"] + Self.ids(0...4) + ["6"], true))
    try await repo.loadMoreMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (["new"] + Self.ids(0...4) + Self.ids(6...8), false))
    #expect(server.requests.map(\.after) == [nil, "2", "5", "5", nil, "2", nil, "6"])
  }

  @Test(arguments: [APISessionError.timedOut, .cancelled, .statusCode(503, bodyExcerpt: "")])
  func `After a next page has failed without a refusal, a reload drops no stored moment`(
    _ error: APISessionError
  ) async throws {
    let server = PagedTimeline(
      Self.ids(0...8),
      onRequest: { request throws(APISessionError) in if request.after == "5" { throw error } })
    let repo = makeRepo(for: server)
    try await repo.reloadMoments(userID: "0")
    try await repo.loadMoreMoments(userID: "0")
    await #expect(throws: MomentsRepoError.self) { try await repo.loadMoreMoments(userID: "0") }
    try await repo.reloadMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...5), true))
  }

  @Test func `The refusal of a page has no effect after the page has arrived`() async throws {
    let isRefusing = Lock(true)
    let server = PagedTimeline(
      Self.ids(0...8),
      onRequest: { request throws(APISessionError) in
        if request.after == "2", isRefusing.withLock({ $0 }) { throw PagedTimeline.refusal(of: "2") }
      })
    let repo = makeRepo(for: server)
    try await repo.reloadMoments(userID: "0")
    await #expect(throws: MomentsRepoError.self) { try await repo.loadMoreMoments(userID: "0") }
    isRefusing.withLock { $0 = false }
    try await repo.loadMoreMoments(userID: "0")
    // The stored timeline again ends at the cursor whose page was refused, although its last moment is `x`. If the
    // refusal still had an effect, the reload would drop `x`.
    var details = MomentsDetails.fixture(momentIDs: Self.ids(0...2) + ["x"])
    details.pageInfo = .init(endCursor: "2", hasNextPage: true)
    try await store.save(momentsDetails: details, userID: "0")
    try await repo.reloadMoments(userID: "0")
    #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...2) + ["x"], true))
  }

  // MARK: - Freshness

  @Test func `A next page doesn't make a timeline fresh, because new moments appear at the head`() async throws {
    let currentTime = Lock(Date(timeIntervalSince1970: 1_000))
    let now: @Sendable () -> Date = { currentTime.withLock { $0 } }
    let store = PersistentDataStore(InMemoryStore(now: now))
    let server = PagedTimeline(Self.ids(0...20))
    func makeTimedRepo() -> MomentsRepo {
      MomentsRepo(
        persistentDataStore: store, getMomentsByUserIDSession: server, updateMomentLikeSession: server, pageSize: 3,
        freshness: Freshness(timeToLive: .seconds(60)), now: now)
    }
    let repo = makeTimedRepo()
    try await repo.reloadMoments(userID: "0")
    currentTime.withLock { $0 += 59 }
    try await repo.loadMoreMoments(userID: "0")
    try await repo.refreshMoments(userID: "0")
    #expect(server.requests.map(\.first) == [3, 3])
    currentTime.withLock { $0 += 1 }
    try await repo.loadMoreMoments(userID: "0")
    server.insert("new")
    // Another repository, such as one after a relaunch, knows only the time of the last save, so it fetches nothing.
    try await makeTimedRepo().refreshMoments(userID: "0")
    #expect(server.requests.map(\.first) == [3, 3, 3])
    // This repository knows that the timeline is no longer fresh. A refresh fetches the complete timeline, not a page.
    try await repo.refreshMoments(userID: "0")
    #expect(server.requests.map(\.first) == [3, 3, 3, nil])
    #expect(try await store.momentsDetails(userID: "0")?.value.moments.map(\.id) == ["new"] + Self.ids(0...20))
    try await repo.refreshMoments(userID: "0")
    #expect(server.requests.map(\.first) == [3, 3, 3, nil])
  }

  @Test func `After a next page, a timeline that another process stores is fresh`() async throws {
    let currentTime = Lock(Date(timeIntervalSince1970: 1_000))
    let now: @Sendable () -> Date = { currentTime.withLock { $0 } }
    let store = PersistentDataStore(InMemoryStore(now: now))
    let server = PagedTimeline(Self.ids(0...7))
    let repo = MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: server, updateMomentLikeSession: server, pageSize: 3,
      freshness: Freshness(timeToLive: .seconds(60)), now: now)
    try await repo.reloadMoments(userID: "0")
    currentTime.withLock { $0 += 3_600 }
    try await repo.loadMoreMoments(userID: "0")
    try await store.save(momentsDetails: .fixture(), userID: "0")
    try await repo.refreshMoments(userID: "0")
    #expect(server.requests.count == 2)
  }

  // MARK: - Without pages

  @Test func `A session without pages returns the complete timeline`() async throws {
    let harness = RepoHarness(getMoments: { _ in .fixture(momentIDs: Self.ids(0...7)) })
    try await harness.repo.reloadMoments(userID: "0")
    try await harness.repo.loadMoreMoments(userID: "0")
    #expect(harness.getMoments.requestedUserIDs == ["0"])
    let details = try await harness.store.momentsDetails(userID: "0")?.value
    #expect(details == .fixture(momentIDs: Self.ids(0...7)))
  }

  @Test func `A timeline without page info decodes, and a page survives encoding and decoding`() throws {
    var details = MomentsDetails.fixture()
    let jsonWithoutPageInfo = try JSONEncoder().encode(details)
    #expect(!String(decoding: jsonWithoutPageInfo, as: UTF8.self).contains("pageInfo"))
    #expect(try JSONDecoder().decode(MomentsDetails.self, from: jsonWithoutPageInfo) == details)
    details.pageInfo = .init(endCursor: "0", hasNextPage: true)
    let jsonWithPageInfo = try JSONEncoder().encode(details)
    #expect(try JSONDecoder().decode(MomentsDetails.self, from: jsonWithPageInfo) == details)
  }

  // MARK: - The GraphQL server

  @Test(.requiresBFF) func `Pages of the server join without a gap while its timeline grows`() async throws {
    try await BFFServer.run { server in
      let session = server.apiSession
      let repo = MomentsRepo(
        persistentDataStore: store, getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: session),
        updateMomentLikeSession: UpdateMomentLikeSession(apiSession: session), pageSize: 6)
      try await repo.reloadMoments(userID: "0")
      #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...5), true))
      try await server.insertMoment(id: "new", userID: "0")
      try await repo.loadMoreMoments(userID: "0")
      #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...11), true))
      try await repo.reloadMoments(userID: "0")
      #expect(try await storedIDsAndHasNextPage() == (["new"] + Self.ids(0...11), true))
      try await repo.loadMoreMoments(userID: "0")
      #expect(try await storedIDsAndHasNextPage() == (["new"] + Self.ids(0...15), false))
      #expect(try await repo.updateLike(isLiked: true, momentID: "15", fromUserID: "0") == .confirmed)
      // The reply to the mutation is the complete timeline, so there is no next page.
      try await repo.loadMoreMoments(userID: "0")
      #expect(try await storedIDsAndHasNextPage() == (["new"] + Self.ids(0...15), nil))
      // The document of the mutation doesn't request URLs. This URL was fetched with an earlier page.
      let link = try await store.momentsDetails(userID: "0")?.value.moments.first { $0.id == "3" }
      #expect(link?.url == "https://example.com/articles/structured-concurrency")
      #expect(try await server.received().map { $0.variables["first"] } == [6, 6, 6, 6, nil])
    }
  }

  @Test(.requiresBFF) func `If the server's schema has no pages, complete timelines are fetched`() async throws {
    try await BFFServer.run(options: ["--schema", "lecture"]) { server in
      let session = server.apiSession
      let repo = MomentsRepo(
        persistentDataStore: store, getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: session),
        updateMomentLikeSession: UpdateMomentLikeSession(apiSession: session), pageSize: 6)
      try await repo.reloadMoments(userID: "0")
      #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...15), nil))
      try await repo.loadMoreMoments(userID: "0")
      try await server.insertMoment(id: "new", userID: "0")
      try await repo.reloadMoments(userID: "0")
      #expect(try await storedIDsAndHasNextPage() == (["new"] + Self.ids(0...15), nil))
      #expect(try await repo.updateLike(isLiked: true, momentID: "15", fromUserID: "0") == .confirmed)
      #expect(try await storedIDsAndHasNextPage() == (["new"] + Self.ids(0...15), nil))
      #expect(
        try await server.received().map(\.operation) == [
          "getMomentsPage", "getMomentsDetailsByUserID", "getMomentsDetailsByUserID", "updateMomentLike",
        ])
    }
  }

  @Test(.requiresBFF) func `If the server no longer has the next page's cursor, paging continues after a reload`()
    async throws
  {
    try await BFFServer.run { server in
      let session = server.apiSession
      let repo = MomentsRepo(
        persistentDataStore: store, getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: session),
        updateMomentLikeSession: UpdateMomentLikeSession(apiSession: session), pageSize: 6)
      var details = MomentsDetails.fixture(momentIDs: Self.ids(0...5) + ["gone"])
      details.pageInfo = .init(endCursor: "gone", hasNextPage: true)
      try await store.save(momentsDetails: details, userID: "0")
      try await repo.reloadMoments(userID: "0")
      #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...5) + ["gone"], true))
      await #expect(throws: MomentsRepoError.self) { try await repo.loadMoreMoments(userID: "0") }
      try await repo.reloadMoments(userID: "0")
      // As many moments as were stored.
      #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...6), true))
      try await repo.loadMoreMoments(userID: "0")
      #expect(try await storedIDsAndHasNextPage() == (Self.ids(0...12), true))
    }
  }
}
