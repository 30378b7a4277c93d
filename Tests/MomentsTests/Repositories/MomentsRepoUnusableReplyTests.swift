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

/// Likes that get no usable reply stay visible, and are sent again unless a fetched timeline confirms them.
@Suite(.timeLimit(.minutes(15))) struct MomentsRepoUnusableReplyTests {
  private static func timeline(isLiked: Bool) -> MomentsDetails {
    .fixture(likedMomentIDs: isLiked ? ["0"] : [])
  }

  private static let unusableReplyErrors: [APISessionError] = [
    .undecodable(reason: "no JSON", excerpt: "{"), .emptyReply, .replyTooLarge(limit: 1),
  ]

  @Test(arguments: unusableReplyErrors)
  func `A like whose reply can't be used is sent again, and nothing is fetched to confirm it`(
    _ error: APISessionError
  ) async throws {
    let isFailing = Lock(true)
    let harness = RepoHarness(
      getMoments: { _ in Self.timeline(isLiked: true) },
      updateLike: { _ throws(APISessionError) in
        if isFailing.withLock({ $0 }) { throw error }
        return Self.timeline(isLiked: true)
      })
    try await harness.store.save(momentsDetails: Self.timeline(isLiked: false), userID: "0")
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1) == [Self.timeline(isLiked: false)])
    #expect(try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    #expect(harness.getMoments.requestedUserIDs == [])
    isFailing.withLock { $0 = false }
    await harness.repo.retryLikes()
    await harness.repo.waitUntilSent()
    // The pending and the confirmed like.
    #expect(await observer.first(2).map(\.moments[0].isLiked) == [true, true])
    #expect(harness.updateLike.requests.count == 2)
    #expect(try await harness.repo.mutations.list() == [])
  }

  @Test func `A like whose reply can't be used stays queued until it is answered, even if a timeline shows it`()
    async throws
  {
    let canFetch = Lock(false)
    let harness = RepoHarness(
      getMoments: { _ throws(APISessionError) in
        if !canFetch.withLock({ $0 }) { throw .emptyReply }
        return Self.timeline(isLiked: true)
      },
      updateLike: { _ throws(APISessionError) in
        if !canFetch.withLock({ $0 }) { throw .emptyReply }
        return Self.timeline(isLiked: true)
      })
    try await harness.store.save(momentsDetails: Self.timeline(isLiked: false), userID: "0")
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1) == [Self.timeline(isLiked: false)])
    #expect(try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    #expect(try await harness.repo.mutations.list().map(\.isLive) == [true])
    #expect(await harness.repo.pendingLikes(userID: "0").first(1) == [["0": true]])
    canFetch.withLock { $0 = true }
    try await harness.repo.getMoments(userID: "0")
    await harness.repo.waitUntilSent()
    #expect(await harness.repo.pendingLikes(userID: "0").first(1) == [[:]])
    #expect(try await harness.repo.mutations.list() == [])
    #expect(await observer.first(1).map(\.moments[0].isLiked) == [true])
    #expect(harness.updateLike.requests.count == 2)
  }

  @Test(arguments: [
    APISessionError.undecodable(reason: "no JSON", excerpt: "<html>"),
    .notAnAPIResponse(status: 200, bodyExcerpt: "<html>"), .notAnAPIResponse(status: 302, bodyExcerpt: ""),
    .notAnAPIResponse(status: 403, bodyExcerpt: "<html>"),
  ])
  func `A like stays queued while the login page of a network answers in place of the server`(
    loginPageError: APISessionError
  ) async throws {
    let isBehindLoginPage = Lock(true)
    let harness = RepoHarness(
      getMoments: { _ throws(APISessionError) in
        if isBehindLoginPage.withLock({ $0 }) { throw loginPageError }
        return Self.timeline(isLiked: true)
      },
      updateLike: { _ throws(APISessionError) in
        if isBehindLoginPage.withLock({ $0 }) { throw loginPageError }
        return Self.timeline(isLiked: true)
      })
    try await harness.store.save(momentsDetails: Self.timeline(isLiked: false), userID: "0")
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1) == [Self.timeline(isLiked: false)])
    #expect(try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    isBehindLoginPage.withLock { $0 = false }
    await harness.repo.retryLikes()
    for await pending in harness.repo.pendingLikes(userID: "0") where pending.isEmpty { break }
    #expect(await observer.first(2).map(\.moments[0].isLiked) == [true, true])
    #expect(harness.updateLike.requests.count == 2)
  }

  private static let temporaryErrors =
    [401, 407, 409, 425].flatMap { status in
      [
        APISessionError.statusCode(status, bodyExcerpt: ""),
        .graphQL([GraphQLError(message: "not now")], status: status),
      ]
    }
    + ["UNAUTHENTICATED", "THROTTLED", "INTERNAL_SERVER_ERROR"].map { code in
      .graphQL([GraphQLError(message: "not now", code: code)])
    }

  @Test(arguments: temporaryErrors)
  func `A like that the server doesn't accept yet stays queued and visible`(
    temporaryError: APISessionError
  ) async throws {
    let isFailing = Lock(true)
    let harness = RepoHarness(
      getMoments: { _ in Self.timeline(isLiked: true) },
      updateLike: { _ throws(APISessionError) in
        if isFailing.withLock({ $0 }) { throw temporaryError }
        return Self.timeline(isLiked: true)
      })
    try await harness.store.save(momentsDetails: Self.timeline(isLiked: false), userID: "0")
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1) == [Self.timeline(isLiked: false)])
    #expect(try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    #expect(try await harness.repo.mutations.list().map(\.isLive) == [true])
    isFailing.withLock { $0 = false }
    await harness.repo.retryLikes()
    for await pending in harness.repo.pendingLikes(userID: "0") where pending.isEmpty { break }
    #expect(await observer.first(2).map(\.moments[0].isLiked) == [true, true])
  }

  /// Whether the reply shows that the server has made the change.
  @Test(.requiresBFF, arguments: [("malformed", false), ("empty", false), ("oversized", false), ("wrong-shape", true)])
  func `A like whose reply is unusable is made once, and stays visible`(fault: String, isAnswer: Bool) async throws {
    try await BFFServer.run { server in
      let apiSession = server.apiSession
      let store = PersistentDataStore(InMemoryStore())
      let clock = ManualClock()
      var repo: MomentsRepo? = MomentsRepo(
        persistentDataStore: store, getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: apiSession),
        updateMomentLikeSession: UpdateMomentLikeSession(apiSession: apiSession), clock: clock)
      try await repo?.getMoments(userID: "0")
      let observer = try #require(repo?.momentsDetails(userID: "0").subscribe())
      try await server.arm(.init(fault: fault))
      let outcome = try await repo?.updateLike(isLiked: true, momentID: "1", fromUserID: "0")
      #expect(outcome == (isAnswer ? .confirmed : .queued))
      if !isAnswer {
        await clock.sleepers()
        clock.advance(by: .seconds(1))
        await repo?.waitUntilSent()
      }
      // The reply to a second attempt isn't stored, because it may repeat the first one.
      let read = BFFServer.Effect.read
      #expect(
        try await server.received().map(\.effect)
          == (isAnswer ? [read, .applied, read] : [read, .applied, .replayed, read]))
      // The stream finishes when the repository is released.
      repo = nil
      var seen: [Bool?] = []
      for await details in observer { seen.append(details.moments.first { $0.id == "1" }?.isLiked) }
      #expect(seen == [false, true])
      #expect(try await store.momentsDetails(userID: "0")?.value.moments.first { $0.id == "1" }?.isLiked == true)
    }
  }
}
