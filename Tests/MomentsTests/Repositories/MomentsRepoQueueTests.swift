import DataStore
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

/// Observers see all changes of the queued likes.
@Suite(.timeLimit(.minutes(15))) final class MomentsRepoQueueTests: Sendable {
  private let isOffline = Lock(true)
  private let clock = ManualClock()

  private static func timeline(isLiked: Bool) -> MomentsDetails {
    .fixture(likedMomentIDs: isLiked ? ["0"] : [])
  }

  /// Returns a repository whose store contains a timeline without likes.
  private func makeRepoOnStoredTimeline(maximumAttempts: Int? = nil) async throws -> MomentsRepo {
    let store = PersistentDataStore(InMemoryStore())
    try await store.save(momentsDetails: Self.timeline(isLiked: false), userID: "0")
    return makeRepo(on: store, maximumAttempts: maximumAttempts)
  }

  private func makeRepo(on store: any PersistentDataStoreType, maximumAttempts: Int? = nil) -> MomentsRepo {
    MomentsRepo(
      persistentDataStore: store,
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ in Self.timeline(isLiked: true) },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { [self] _ throws(APISessionError) in
        if isOffline.withLock({ $0 }) { throw .timedOut }
        return Self.timeline(isLiked: true)
      },
      retryPolicy: RetryPolicy(maximumAttempts: maximumAttempts), clock: clock)
  }

  @Test func `A like that is cancelled in the queue is rolled back`() async throws {
    let repo = try await makeRepoOnStoredTimeline()
    let observer = repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1).map(\.moments[0].isLiked) == [false])
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    #expect(await observer.first(1).map(\.moments[0].isLiked) == [true])
    let entry = try #require(try await repo.mutations.list().first)
    try await repo.mutations.cancel(entry.id)
    #expect(await observer.first(1).map(\.moments[0].isLiked) == [false])
    for await pending in repo.pendingLikes(userID: "0") where pending.isEmpty { break }
  }

  @Test func `A like without attempts left is rolled back, and visible again when it is requeued`() async throws {
    let repo = try await makeRepoOnStoredTimeline(maximumAttempts: 2)
    let observer = repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1).map(\.moments[0].isLiked) == [false])
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    #expect(await observer.first(1).map(\.moments[0].isLiked) == [true])
    // Ends the delay before the second attempt, which is the last one.
    await clock.sleepers()
    clock.advance(by: .seconds(1))
    #expect(await observer.first(1).map(\.moments[0].isLiked) == [false])

    let deadLetter = try #require(try await repo.mutations.list().first)
    #expect(!deadLetter.isLive)
    isOffline.withLock { $0 = false }
    try await repo.mutations.requeue(deadLetter.id)
    await repo.waitUntilSent()
    // The timelines with the requeued like and with the confirmed one.
    #expect(await observer.first(2).map(\.moments[0].isLiked) == [true, true])
    #expect(await repo.pendingLikes(userID: "0").first(1) == [[:]])
    #expect(try await repo.mutations.list() == [])
  }

  @Test func `A suspended repository stores likes, and sends them when it is drained or resumed`() async throws {
    isOffline.withLock { $0 = false }
    let repo = try await makeRepoOnStoredTimeline()
    await repo.suspend()
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    #expect(await repo.report().lanes.map(\.status) == [.suspended])
    #expect(await repo.drain(within: .seconds(20)) == .empty)
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    await repo.resume()
    await repo.waitUntilSent()
  }

  @Test func `A like whose only attempt fails is rolled back before its call throws`() async throws {
    let repo = try await makeRepoOnStoredTimeline(maximumAttempts: 1)
    let observer = repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1).map(\.moments[0].isLiked) == [false])
    await #expect(throws: MomentsRepoError.session(.timedOut)) {
      try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0")
    }
    #expect(await repo.momentsDetails(userID: "0").first(1).map(\.moments[0].isLiked) == [false])
    #expect(await observer.first(2).map(\.moments[0].isLiked) == [true, false])
    #expect(try await repo.mutations.list() == [])
  }

  @Test func `An unlike made before the queue has been read is applied over the like of an earlier process`()
    async throws
  {
    let storage = InMemoryStorage()
    do {
      let repo = makeRepo(on: PersistentDataStore(InMemoryStore(storage: storage)))
      #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    }
    // The first read of the queue, which is the collection `moments-details.mutations`, fails. Later ones are delayed.
    let failure = StoreError.readFailed(SystemError(code: 5, operation: "read", path: "/store"))
    let isRepaired = Lock(false)
    let gate = Gate()
    let store = InterposedStore(
      InMemoryStore(storage: storage),
      beforeObserving: { collection throws(StoreError) in
        guard collection == "moments-details.mutations" else { return }
        if !isRepaired.withLock({ $0 }) { throw failure }
        await gate.pass()
      })
    let persistentDataStore = PersistentDataStore(store)
    try await persistentDataStore.save(momentsDetails: Self.timeline(isLiked: false), userID: "0")
    let repo = makeRepo(on: persistentDataStore)
    for await event in repo.events where event == .storeFailed(failure) { break }
    isRepaired.withLock { $0 = true }
    // No time passes, so the repository doesn't repeat the failed read by itself. The call reads the queue.
    let unlike = Task { try await repo.updateLike(isLiked: false, momentID: "0", fromUserID: "0") }
    await gate.arrivals()
    let observer = repo.momentsDetails(userID: "0").subscribe()
    gate.open()
    #expect(try await unlike.value == .queued)
    #expect(try await repo.mutations.list().map(\.mutation.isLiked) == [true, false])
    #expect(await repo.pendingLikes(userID: "0").first(1) == [["0": false]])
    // The observer receives nothing before the queue has been read, then the timeline with the earlier like.
    #expect(await observer.first(2).map(\.moments[0].isLiked) == [true, false])
  }
}
