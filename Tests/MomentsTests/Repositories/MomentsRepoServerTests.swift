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

/// Tests the observed timelines, the stored timelines and the requests of a repository with a file store and a real
/// server.
@Suite(.requiresBFF, .timeLimit(.minutes(15)))
struct MomentsRepoServerTests {
  /// A launch of an app with a store in a folder, a server, and a clock that the tests advance.
  private struct Launch {
    let clock = ManualClock()
    let store: PersistentDataStore<FileStore>
    let repo: MomentsRepo

    /// Creates a launch.
    ///
    /// - Parameter hoursLater: The hours since the launches before, after which no stored delay goes on.
    init(in folder: URL, at server: BFFServer, hoursLater: Int = 0) {
      let apiSession = server.apiSession
      store = PersistentDataStore(FileStore(folder: folder))
      repo = MomentsRepo(
        persistentDataStore: store, getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: apiSession),
        updateMomentLikeSession: UpdateMomentLikeSession(apiSession: apiSession), clock: clock,
        now: { Date() + TimeInterval(hoursLater * 3600) })
    }

    /// Waits until no like is queued or in flight.
    func waitUntilSent() async { await repo.waitUntilSent() }
  }

  /// Returns whether each of the moments is liked; `nil` for a moment that isn't in the timeline.
  private static func isLikedValues(in details: MomentsDetails, of momentIDs: [String]) -> [Bool?] {
    momentIDs.map { id in details.moments.first { $0.id == id }?.isLiked }
  }

  private static func fetchTimeline(from server: BFFServer) async throws -> MomentsDetails {
    try await GetMomentsByUserIDSession(apiSession: server.apiSession).getMoments(userID: "0")
  }

  private static func likeRequests(receivedBy server: BFFServer) async throws -> [BFFServer.Request] {
    try await server.received().filter { $0.operation == "updateMomentLike" }
  }

  // MARK: - Offline

  /// How a launch ends: its repository is released, or its process is killed.
  enum LaunchEnd: CaseIterable { case released, killed }

  /// What makes the next launch send the likes.
  enum RetryTrigger: CaseIterable { case retryLikes, backoff }

  private static let offlineCases = LaunchEnd.allCases.flatMap { end in RetryTrigger.allCases.map { (end, $0) } }

  @Test(arguments: offlineCases, ServerSchema.allCases)
  func `Likes made offline are shown, survive a relaunch, and are delivered once, in order`(
    offlineCase: (end: LaunchEnd, trigger: RetryTrigger), schema: ServerSchema
  ) async throws {
    let folder = TemporaryFolder()
    let momentIDs = ["1", "3", "7"]
    try await BFFServer.run(keepsState: true, options: schema.options) { server in
      try await Launch(in: folder.url, at: server).repo.getMoments(userID: "0")
      await server.stop()
      switch offlineCase.end {
      case .released:
        let offlineLaunch = Launch(in: folder.url, at: server)
        let observer = offlineLaunch.repo.momentsDetails(userID: "0").subscribe()
        #expect(await observer.first(1).map { Self.isLikedValues(in: $0, of: momentIDs) } == [[false, false, false]])
        for id in momentIDs {
          #expect(try await offlineLaunch.repo.updateLike(isLiked: true, momentID: id, fromUserID: "0") == .queued)
        }
        let seen = await observer.first(3).map { Self.isLikedValues(in: $0, of: momentIDs) }
        #expect(seen == [[true, false, false], [true, true, false], [true, true, true]])
      case .killed:
        var child = try ChildProcess("like-at", folder.url, [server.url.absoluteString] + momentIDs)
        for number in 0..<3 { #expect(await child.line()?.hasPrefix("\(number) queued ") == true) }
        child.kill()
        #expect(await child.end() == .killed)
      }

      var nextLaunch: Launch? = Launch(in: folder.url, at: server)
      let store = try #require(nextLaunch?.store)
      let observer = try #require(nextLaunch?.repo.momentsDetails(userID: "0").subscribe())
      // The server is still stopped.
      let shown = try #require(await nextLaunch?.repo.momentsDetails(userID: "0").first(1).first)
      #expect(Self.isLikedValues(in: shown, of: momentIDs) == [true, true, true])
      let pending = try #require(await nextLaunch?.repo.pendingLikes(userID: "0").first(1).first)
      #expect(pending == ["1": true, "3": true, "7": true])

      await nextLaunch?.clock.sleepers()
      try await server.start()
      switch offlineCase.trigger {
      case .retryLikes:
        await nextLaunch?.repo.retryLikes()
        await nextLaunch?.waitUntilSent()
      case .backoff:
        // An attempt may have failed just before the server started, so that there is another delay.
        let advancing = Task { [clock = nextLaunch?.clock] in
          while !Task.isCancelled {
            clock?.advance(by: .seconds(1))
            await Task.yield()
          }
        }
        await nextLaunch?.waitUntilSent()
        advancing.cancel()
      }

      let likeRequests = try await Self.likeRequests(receivedBy: server)
      #expect(likeRequests.map { $0.variables["momentID"] } == ["1", "3", "7"])
      #expect(likeRequests.map(\.effect) == [.applied, .applied, .applied])
      #expect(Set(likeRequests.compactMap(\.idempotencyKey)).count == 3)
      #expect(await nextLaunch?.repo.pendingLikes(userID: "0").first(1) == [[:]])
      #expect(try await nextLaunch?.repo.mutations.list().isEmpty == true)
      nextLaunch = nil
      // The stream finishes when the repository is released.
      var seen: [MomentsDetails] = []
      for await details in observer { seen.append(details) }
      #expect(seen.allSatisfy { Self.isLikedValues(in: $0, of: momentIDs) == [true, true, true] })
      let timeline = try await Self.fetchTimeline(from: server)
      #expect(Self.isLikedValues(in: timeline, of: momentIDs) == [true, true, true])
      #expect(seen.last == timeline)
      #expect(try await store.momentsDetails(userID: "0")?.value == timeline)
    }
  }

  // MARK: - Lost replies

  @Test func `A like whose reply is lost is made once, and stays visible`() async throws {
    let folder = TemporaryFolder()
    try await BFFServer.run { server in
      var launch: Launch? = Launch(in: folder.url, at: server)
      let store = try #require(launch?.store)
      try await launch?.repo.getMoments(userID: "0")
      let observer = try #require(launch?.repo.momentsDetails(userID: "0").subscribe())
      try await server.arm(.init(fault: "drop-after"))
      #expect(try await launch?.repo.updateLike(isLiked: true, momentID: "1", fromUserID: "0") == .queued)
      await launch?.clock.sleepers()
      launch?.clock.advance(by: .seconds(1))
      await launch?.waitUntilSent()

      let received = try await server.received()
      let read = BFFServer.Effect.read
      #expect(received.map(\.effect) == [read, .applied, .replayed, read])
      #expect(received[1].idempotencyKey != nil && received[1].idempotencyKey == received[2].idempotencyKey)
      #expect(received.map(\.executions) == [1, 1, 0, 1])
      launch = nil
      var seen: [MomentsDetails] = []
      for await details in observer { seen.append(details) }
      // The stored timeline, then the one with the pending like, which equals the fetched one that confirms the like.
      // The reply to the second attempt isn't shown, because it may repeat the lost one and be outdated.
      #expect(seen.map { Self.isLikedValues(in: $0, of: ["1"]) } == [[false], [true]])
      let timeline = try await Self.fetchTimeline(from: server)
      #expect(seen.last == timeline)
      #expect(try await store.momentsDetails(userID: "0")?.value == timeline)
    }
  }

  // MARK: - Sharing

  @Test(arguments: [true, false])
  func `A hundred callers share a request, which is cancelled only if all of them are cancelled`(lastIsCancelled: Bool)
    async throws
  {
    let folder = TemporaryFolder()
    try await BFFServer.run { server in
      let launch = Launch(in: folder.url, at: server)
      let events = launch.repo.events.subscribe()
      try await server.arm(.init(fault: "hold", gate: "reply"))
      let callers = (0..<100).map { _ in
        Task { () async -> MomentsRepoError? in
          do throws(MomentsRepoError) {
            try await launch.repo.getMoments(userID: "0")
            return nil
          } catch {
            return error
          }
        }
      }
      try await server.waits(at: "reply")
      for await event in events { if case .requestJoined("0", callers: 100) = event { break } }
      for caller in callers.dropLast() {
        caller.cancel()
        #expect(await caller.value == .cancelled)
      }
      // The request is still in flight.
      #expect(try await server.received().map(\.outcome) == [nil])
      if lastIsCancelled {
        callers[99].cancel()
        #expect(await callers[99].value == .cancelled)
        #expect(try await server.received(disconnected: 1).map(\.outcome) == ["client-went-away"])
        #expect(try await launch.store.momentsDetails(userID: "0") == nil)
      } else {
        try await server.open(gate: "reply")
        #expect(await callers[99].value == nil)
        // The outcome of an answered request with a fault is the name of the fault.
        #expect(try await server.received().map(\.outcome) == ["hold"])
        #expect(try await launch.store.momentsDetails(userID: "0")?.value.moments.count == 16)
      }
    }
  }

  // MARK: - Refusal

  /// Stores a timeline with a moment that the server doesn't have.
  private static func storeTimelineWithDeletedMoment(in store: PersistentDataStore<FileStore>) async throws {
    try await store.save(momentsDetails: .fixture(momentIDs: ["gone"]), userID: "0")
  }

  private static func isRefusal(_ error: MomentsRepoError?) -> Bool {
    if case .session(.graphQL) = error { true } else { false }
  }

  @Test func `A like that the server refuses is rolled back and not kept, and its caller receives the error`()
    async throws
  {
    let folder = TemporaryFolder()
    try await BFFServer.run { server in
      let launch = Launch(in: folder.url, at: server)
      try await Self.storeTimelineWithDeletedMoment(in: launch.store)
      let observer = launch.repo.momentsDetails(userID: "0").subscribe()
      #expect(await observer.first(1).map { Self.isLikedValues(in: $0, of: ["gone"]) } == [[false]])
      let error = await #expect(throws: MomentsRepoError.self) {
        try await launch.repo.updateLike(isLiked: true, momentID: "gone", fromUserID: "0")
      }
      #expect(Self.isRefusal(error))
      #expect(await observer.first(2).map { Self.isLikedValues(in: $0, of: ["gone"]) } == [[true], [false]])
      #expect(try await launch.repo.mutations.list().isEmpty)
      #expect(await launch.repo.pendingLikes(userID: "0").first(1) == [[:]])
      #expect(try await server.received().map(\.effect) == [.refused])
      // The refused like doesn't block the next one.
      #expect(try await launch.repo.updateLike(isLiked: true, momentID: "1", fromUserID: "0") == .confirmed)
    }
  }

  @Test func `A like refused after a relaunch is rolled back, reported, and kept as a dead letter`() async throws {
    let folder = TemporaryFolder()
    try await BFFServer.run(keepsState: true) { server in
      await server.stop()
      do {
        let offlineLaunch = Launch(in: folder.url, at: server)
        try await Self.storeTimelineWithDeletedMoment(in: offlineLaunch.store)
        #expect(try await offlineLaunch.repo.updateLike(isLiked: true, momentID: "gone", fromUserID: "0") == .queued)
      }
      try await server.start()
      try await server.arm(.init(fault: "hold", gate: "refusal"))

      let launch = Launch(in: folder.url, at: server, hoursLater: 1)
      let events = launch.repo.events.subscribe()
      let observer = launch.repo.momentsDetails(userID: "0").subscribe()
      #expect(await observer.first(1).map { Self.isLikedValues(in: $0, of: ["gone"]) } == [[true]])
      try await server.open(gate: "refusal")
      #expect(await observer.first(1).map { Self.isLikedValues(in: $0, of: ["gone"]) } == [[false]])
      await launch.waitUntilSent()
      let entries = try await launch.repo.mutations.list()
      #expect(entries.map(\.mutation) == [MomentLike(userID: "0", momentID: "gone", isLiked: true)])
      #expect(entries.map(\.isLive) == [false])
      let id = try #require(entries.first?.id)
      for await event in events {
        if case .mutationRefused(id, .byServer(let reason)) = event {
          #expect(entries.first?.standing == .refused(reason: reason))
          break
        }
      }
      #expect(await launch.repo.pendingLikes(userID: "0").first(1) == [[:]])
      #expect(try await Self.likeRequests(receivedBy: server).map(\.effect) == [.refused])
    }
  }
}
