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

@Suite(.timeLimit(.minutes(15))) struct MomentsRepoLikingTests {
  /// Returns a timeline of the moments `0` and `1`, of which the user likes the given ones.
  private static func timeline(liked momentIDs: String...) -> MomentsDetails {
    var details = MomentsDetails.fixture(momentIDs: ["0", "1"], likedMomentIDs: Set(momentIDs))
    for index in details.moments.indices where momentIDs.contains(details.moments[index].id) {
      details.moments[index].likes = [.init(id: "0", avatar: details.userDetails.avatar)]
    }
    return details
  }

  @Test func `A like is shown before the server has it, and is pending until a timeline confirms it`() async throws {
    let gate = Gate()
    let harness = RepoHarness(updateLike: { _ in
      await gate.pass()
      return Self.timeline(liked: "0")
    })
    try await harness.store.save(momentsDetails: Self.timeline(), userID: "0")
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    let pendingLikesObserver = harness.repo.pendingLikes(userID: "0").buffering(.unbounded).subscribe()
    #expect(await observer.first(1) == [Self.timeline()])

    let caller = Task { try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") }
    await gate.arrivals()
    #expect(await observer.first(1) == [Self.timeline(liked: "0")])
    #expect(try await harness.store.momentsDetails(userID: "0")?.value == Self.timeline())
    gate.open()
    #expect(try await caller.value == .confirmed)
    #expect(try await harness.store.momentsDetails(userID: "0")?.value == Self.timeline(liked: "0"))
    #expect(await pendingLikesObserver.first(3) == [[:], ["0": true], [:]])
    #expect(try await harness.repo.mutations.list() == [])
  }

  @Test func `A like of one moment doesn't remove the URL of another one, whose type is unknown`() async throws {
    // The reply to a like has no URLs.
    let harness = RepoHarness(updateLike: { _ in Self.timeline(liked: "0") })
    var stored = Self.timeline()
    stored.moments[1].type = .unknown("VIDEO")
    stored.moments[1].url = "https://example.com/video"
    try await harness.store.save(momentsDetails: stored, userID: "0")
    #expect(try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .confirmed)
    let timeline = try #require(try await harness.store.momentsDetails(userID: "0")?.value)
    #expect(timeline.moments.map(\.url) == [nil, "https://example.com/video"])
  }

  @Test func `Pending likes of several moments are also applied to timelines that are stored later`() async throws {
    let harness = RepoHarness(updateLike: { _ throws(APISessionError) in throw .timedOut })
    try await harness.store.save(momentsDetails: Self.timeline(), userID: "0")
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1) == [Self.timeline()])
    #expect(try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    #expect(try await harness.repo.updateLike(isLiked: true, momentID: "1", fromUserID: "0") == .queued)
    var later = Self.timeline()
    later.moments[0].title = "later"
    try await harness.store.save(momentsDetails: later, userID: "0")
    // The repository receives an external save shortly after the save returns.
    var shown = Self.timeline(liked: "0", "1")
    shown.moments[0].title = "later"
    #expect(
      await observer.first(3) == [Self.timeline(liked: "0"), Self.timeline(liked: "0", "1"), shown])
    shown = Self.timeline(liked: "1")
    shown.moments[0].title = "later"
    #expect(try await harness.repo.updateLike(isLiked: false, momentID: "0", fromUserID: "0") == .queued)
    #expect(await observer.first(1) == [shown])
    for await pending in harness.repo.pendingLikes(userID: "0") where pending.count == 2 {
      #expect(pending == ["0": false, "1": true])
      break
    }
  }

  @Test func `A like that the server refuses is rolled back, and the server's error is thrown`() async throws {
    let gate = Gate()
    let harness = RepoHarness(updateLike: { _ throws(APISessionError) in
      await gate.pass()
      throw .statusCode(403, bodyExcerpt: "no")
    })
    try await harness.store.save(momentsDetails: Self.timeline(), userID: "0")
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1) == [Self.timeline()])
    let caller = Task { try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") }
    #expect(await observer.first(1) == [Self.timeline(liked: "0")])
    gate.open()
    await #expect(throws: MomentsRepoError.session(.statusCode(403, bodyExcerpt: "no"))) { try await caller.value }
    #expect(await observer.first(1) == [Self.timeline()])
    // The queue keeps no refused like whose caller received the error.
    #expect(try await harness.repo.mutations.list() == [])
  }

  @Test func `A like of an earlier process is shown at once, and is sent again under the same key`() async throws {
    let storage = InMemoryStorage()
    let idempotencyKeys = Lock<[String]>([])
    let isOffline = Lock(true)
    func makeRepo() -> MomentsRepo {
      MomentsRepo(
        persistentDataStore: PersistentDataStore(InMemoryStore(storage: storage)),
        getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ throws(APISessionError) in
          if isOffline.withLock({ $0 }) { throw .timedOut }
          return Self.timeline(liked: "0")
        },
        updateMomentLikeSession: KeyedSession { key throws(APISessionError) in
          idempotencyKeys.withLock { $0.append(key) }
          if isOffline.withLock({ $0 }) { throw .timedOut }
          return Self.timeline(liked: "0")
        })
    }
    let store = PersistentDataStore(InMemoryStore(storage: storage))
    try await store.save(momentsDetails: Self.timeline(), userID: "0")
    var earlierRepo: MomentsRepo? = makeRepo()
    #expect(try await earlierRepo!.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    // Simulates the end of the earlier process.
    earlierRepo = nil

    let laterRepo = makeRepo()
    let observer = laterRepo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1) == [Self.timeline(liked: "0")])
    isOffline.withLock { $0 = false }
    await laterRepo.retryLikes()
    for await pending in laterRepo.pendingLikes(userID: "0") where pending.isEmpty { break }
    #expect(Set(idempotencyKeys.withLock { $0 }).count == 1)
    #expect(
      try await PersistentDataStore(InMemoryStore(storage: storage)).momentsDetails(userID: "0")?.value
        == Self.timeline(liked: "0"))
  }

  @Test func `A like that can't be stored is rolled back, and the error is thrown`() async throws {
    let folder = try TemporaryFolder.created()
    let updateLikeSession = UpdateMomentLikeSessionStub { _ in Self.timeline(liked: "0") }
    let fileURL = folder.url.appending(path: "store")
    // A file in place of the folder makes every call of the store fail.
    try Data().write(to: fileURL)
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(FileStore(folder: fileURL)),
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ in Self.timeline() },
      updateMomentLikeSession: updateLikeSession)
    do throws(MomentsRepoError) {
      try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0")
      Issue.record("The call didn't throw.")
    } catch {
      guard case .store = error else {
        Issue.record("Unexpected error \(error)")
        return
      }
    }
    for await pending in repo.pendingLikes(userID: "0") {
      #expect(pending.isEmpty)
      break
    }
    #expect(updateLikeSession.requests == [])
    try FileManager.default.removeItem(at: fileURL)
    try await repo.getMoments(userID: "0")
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .confirmed)
  }

  @Test func `Cancelling the caller ends the call but doesn't cancel the like`() async throws {
    let gate = Gate()
    let harness = RepoHarness(updateLike: { _ in
      await gate.pass()
      return Self.timeline(liked: "0")
    })
    try await harness.store.save(momentsDetails: Self.timeline(), userID: "0")
    let caller = Task { try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") }
    await gate.arrivals()
    caller.cancel()
    await #expect(throws: MomentsRepoError.cancelled) { try await caller.value }
    gate.open()
    for await pending in harness.repo.pendingLikes(userID: "0") where pending.isEmpty { break }
    #expect(await harness.repo.momentsDetails(userID: "0").first(1) == [Self.timeline(liked: "0")])
    #expect(harness.updateLike.requests.count == 1)
  }
}

/// A session that passes the idempotency key of each like to a closure.
private struct KeyedSession: UpdateMomentLikeSessionType {
  let reply: @Sendable (String) async throws(APISessionError) -> MomentsDetails

  init(reply: @escaping @Sendable (String) async throws(APISessionError) -> MomentsDetails) {
    self.reply = reply
  }

  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    throw .unsupportedURL("A like needs a key.")
  }

  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String, idempotencyKey: String
  ) async throws(APISessionError) -> MomentsDetails {
    try await reply(idempotencyKey)
  }
}
