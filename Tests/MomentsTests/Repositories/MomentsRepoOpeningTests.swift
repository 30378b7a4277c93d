import DataStore
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

/// What a repository does while its store cannot be observed yet, or could not.
@Suite(.timeLimit(.minutes(5))) struct MomentsRepoOpeningTests {
  private func makeRepo(on store: any PersistentDataStoreType) -> MomentsRepo {
    MomentsRepo(
      persistentDataStore: store,
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ in .fixture() },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ in .fixture(likedMomentIDs: ["0"]) })
  }

  @Test func `A timeline that is removed before the store is observed keeps nobody waiting`() async throws {
    let gate = Gate()
    let slow = InterposedStore(beforeObserving: { if $0 == "moment-likes" { await gate.pass() } })
    let store = PersistentDataStore(slow)
    let repo = makeRepo(on: store)
    let load = Task { try await repo.getMoments(userID: "0") }
    for await change in try await slow.changes(of: StoreKey<MomentsDetails>("moments-details", id: "0")) {
      guard case .saved = change else { continue }
      break
    }
    try await store.removeMomentsDetails(userID: "0")
    gate.open()
    try await load.value
    #expect(await repo.loadState(userID: "0").first(1) == [.idle])
  }

  @Test func `While the timelines cannot be observed, likes are sent all the same`() async throws {
    let failure = StoreError.readFailed(SystemError(code: 5, operation: "read", path: "/store"))
    let isMended = Lock(false)
    let store = PersistentDataStore(
      InterposedStore(beforeObserving: { name throws(StoreError) in
        if name == "moments-details", !isMended.withLock({ $0 }) { throw failure }
      }))
    try await store.save(momentsDetails: .fixture(), userID: "0")
    let repo = makeRepo(on: store)
    let events = repo.events.subscribe()
    let like = Task { try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") }
    for await event in events { if case .mutationEnqueued = event { break } }
    await #expect(throws: MomentsRepoError.store(failure)) { try await repo.getMoments(userID: "0") }
    // The timeline with it is durable, whoever can see it.
    #expect(try await like.value == .confirmed)
    #expect(try await repo.likeQueue.entries() == [])
    isMended.withLock { $0 = true }
    try await repo.refreshMoments(userID: "0")
    let stored = try await store.momentsDetails(userID: "0")?.value
    #expect(await repo.momentsDetails(userID: "0").first(1) == [stored])
    #expect(await repo.pendingLikes(userID: "0").first(1) == [[:]])
  }

  @Test func `A like that joined an older fetch, which then could not tell the observers, asks once more`()
    async throws
  {
    let failure = StoreError.readFailed(SystemError(code: 5, operation: "read", path: "/store"))
    let observing = Gate()
    let observationCount = Lock(0)
    let slow = InterposedStore(beforeObserving: { name throws(StoreError) in
      guard name == "moments-details" else { return }
      let isFirst = observationCount.withLock { count in
        count += 1
        return count == 1
      }
      if !isFirst { await observing.pass() }
      throw failure
    })
    let sending = Gate()
    let getMoments = GetMomentsByUserIDSessionStub { _ in .fixture() }
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(slow),
      getMomentsByUserIDSession: getMoments,
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ in
        await sending.pass()
        return .fixture(likedMomentIDs: ["0"])
      })
    let events = repo.events.subscribe()
    let changes = try await slow.changes(of: StoreKey<MomentsDetails>("moments-details", id: "0")).subscribe()

    let like = Task { try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") }
    await sending.arrivals()
    let load = Task { try await repo.getMoments(userID: "0") }
    for await change in changes { if case .saved = change { break } }
    // Older than what is stored now, so the like has a timeline fetched, and joins the load.
    sending.open()
    for await event in events { if case .requestJoined = event { break } }
    observing.open()
    await #expect(throws: MomentsRepoError.store(failure)) { try await load.value }
    #expect(try await like.value == .confirmed)
    #expect(try await repo.likeQueue.entries() == [])
    #expect(getMoments.requestedUserIDs == ["0", "0"])
  }

  /// A repository that has failed to observe its store, which is mended since and holds a fresh timeline.
  private func repoOnMendedStore() async -> MomentsRepo {
    let failure = StoreError.readFailed(SystemError(code: 5, operation: "read", path: "/store"))
    let isMended = Lock(false)
    let store = InterposedStore(beforeObserving: { _ throws(StoreError) in
      if !isMended.withLock({ $0 }) { throw failure }
    })
    let repo = makeRepo(on: PersistentDataStore(store))
    await #expect(throws: MomentsRepoError.store(failure)) { try await repo.getMoments(userID: "0") }
    isMended.withLock { $0 = true }
    return repo
  }

  @Test func `Where the stored timeline is fresh, a refresh still brings it to the observers`() async throws {
    let repo = await repoOnMendedStore()
    try await repo.refreshMoments(userID: "0")
    #expect(await repo.momentsDetails(userID: "0").first(1) == [.fixture()])
  }

  @Test func `Where the stored timeline is whole, to ask for more still brings it to the observers`() async throws {
    let repo = await repoOnMendedStore()
    try await repo.loadMoreMoments(userID: "0")
    #expect(await repo.momentsDetails(userID: "0").first(1) == [.fixture()])
  }

  @Test func `To retry the likes observes the store again, so that those of an earlier process are sent`()
    async throws
  {
    let repo = await repoOnMendedStore()
    await repo.retryLikes()
    #expect(await repo.momentsDetails(userID: "0").first(1) == [.fixture()])
  }
}
