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
  private static func liked(_ momentIDs: String...) -> MomentsDetails {
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
      return Self.liked("0")
    })
    try await harness.store.save(momentsDetails: Self.liked(), userID: "0")
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    let pending = harness.repo.pendingLikes(userID: "0").buffering(.unbounded).subscribe()
    #expect(await observer.first(1) == [Self.liked()])

    let like = Task { try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") }
    await gate.arrivals()
    #expect(await observer.first(1) == [Self.liked("0")])
    #expect(try await harness.store.momentsDetails(userID: "0")?.value == Self.liked())
    gate.open()
    #expect(try await like.value == .confirmed)
    #expect(await observer.first(1) == [Self.liked("0")])
    #expect(try await harness.store.momentsDetails(userID: "0")?.value == Self.liked("0"))
    #expect(await pending.first(3) == [[:], ["0": true], [:]])
    #expect(try await harness.repo.mutations.list() == [])
  }

  @Test func `A like of one moment doesn't remove the URL of another moment of an unknown type`() async throws {
    // The reply to a like has no URLs.
    let harness = RepoHarness(updateLike: { _ in Self.liked("0") })
    var stored = Self.liked()
    stored.moments[1].type = .unknown("VIDEO")
    stored.moments[1].url = "https://example.com/video"
    try await harness.store.save(momentsDetails: stored, userID: "0")
    #expect(try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .confirmed)
    let timeline = try #require(try await harness.store.momentsDetails(userID: "0")?.value)
    #expect(timeline.moments.map(\.url) == [nil, "https://example.com/video"])
  }

  @Test func `Pending likes of several moments are also applied to timelines that are stored later`() async throws {
    let harness = RepoHarness(updateLike: { _ throws(APISessionError) in throw .timedOut })
    try await harness.store.save(momentsDetails: Self.liked(), userID: "0")
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1) == [Self.liked()])
    #expect(try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    #expect(try await harness.repo.updateLike(isLiked: true, momentID: "1", fromUserID: "0") == .queued)
    try await harness.store.save(momentsDetails: Self.liked(), userID: "0")
    // The repository receives an external save shortly after the save returns.
    #expect(await observer.first(3) == [Self.liked("0"), Self.liked("0", "1"), Self.liked("0", "1")])
    #expect(try await harness.repo.updateLike(isLiked: false, momentID: "0", fromUserID: "0") == .queued)
    #expect(await observer.first(1) == [Self.liked("1")])
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
    try await harness.store.save(momentsDetails: Self.liked(), userID: "0")
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1) == [Self.liked()])
    let like = Task { try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") }
    #expect(await observer.first(1) == [Self.liked("0")])
    gate.open()
    await #expect(throws: MomentsRepoError.session(.statusCode(403, bodyExcerpt: "no"))) { try await like.value }
    #expect(await observer.first(1) == [Self.liked()])
    // The queue keeps no refused like whose caller received the error.
    #expect(try await harness.repo.mutations.list() == [])
  }

  @Test func `A like of an earlier process is shown at once, and is sent again under the same key`() async throws {
    let storage = InMemoryStorage()
    let keys = Lock<[String]>([])
    let isAway = Lock(true)
    func open() -> MomentsRepo {
      MomentsRepo(
        persistentDataStore: PersistentDataStore(InMemoryStore(storage: storage)),
        getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ throws(APISessionError) in
          if isAway.withLock({ $0 }) { throw .timedOut }
          return Self.liked("0")
        },
        updateMomentLikeSession: KeyedSession { key throws(APISessionError) in
          keys.withLock { $0.append(key) }
          if isAway.withLock({ $0 }) { throw .timedOut }
          return Self.liked("0")
        })
    }
    let store = PersistentDataStore(InMemoryStore(storage: storage))
    try await store.save(momentsDetails: Self.liked(), userID: "0")
    var repo: MomentsRepo? = open()
    #expect(try await repo!.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    repo = nil

    let next = open()
    let observer = next.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1) == [Self.liked("0")])
    isAway.withLock { $0 = false }
    await next.retryLikes()
    for await pending in next.pendingLikes(userID: "0") where pending.isEmpty { break }
    #expect(await observer.first(1) == [Self.liked("0")])
    #expect(Set(keys.withLock { $0 }).count == 1)
    #expect(
      try await PersistentDataStore(InMemoryStore(storage: storage)).momentsDetails(userID: "0")?.value
        == Self.liked("0"))
  }

  @Test func `A like that can't be stored is rolled back, and the error is thrown`() async throws {
    let folder = try TemporaryFolder.existing()
    let session = UpdateMomentLikeSessionStub { _ in Self.liked("0") }
    let blocked = folder.url.appending(path: "store")
    // A file in place of the folder makes every call of the store fail.
    try Data().write(to: blocked)
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(FileStore(folder: blocked)),
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ in Self.liked() }, updateMomentLikeSession: session)
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
    #expect(session.requests == [])
    try FileManager.default.removeItem(at: blocked)
    try await repo.getMoments(userID: "0")
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .confirmed)
  }

  @Test func `Cancelling the caller ends the call but doesn't cancel the like`() async throws {
    let gate = Gate()
    let harness = RepoHarness(updateLike: { _ in
      await gate.pass()
      return Self.liked("0")
    })
    try await harness.store.save(momentsDetails: Self.liked(), userID: "0")
    let like = Task { try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") }
    await gate.arrivals()
    like.cancel()
    await #expect(throws: MomentsRepoError.cancelled) { try await like.value }
    gate.open()
    for await pending in harness.repo.pendingLikes(userID: "0") where pending.isEmpty { break }
    #expect(await harness.repo.momentsDetails(userID: "0").first(1) == [Self.liked("0")])
    #expect(harness.updateLike.requests.count == 1)
  }
}

/// A session that passes the key of each like to a closure.
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
