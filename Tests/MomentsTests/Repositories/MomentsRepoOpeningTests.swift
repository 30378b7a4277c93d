import DataStore
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

/// The behavior of a repository whose store couldn't be observed at first.
@Suite(.timeLimit(.minutes(15))) struct MomentsRepoOpeningTests {
  private func makeRepo(on store: any PersistentDataStoreType) -> MomentsRepo {
    MomentsRepo(
      persistentDataStore: store,
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ in .fixture() },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ in .fixture(likedMomentIDs: ["0"]) })
  }

  /// Returns a repository that failed to observe its store, which works again.
  private func makeRepoOnRepairedStore() async -> MomentsRepo {
    let failure = StoreError.readFailed(SystemError(code: 5, operation: "read", path: "/store"))
    let isRepaired = Lock(false)
    let store = InterposedStore(beforeObserving: { _ throws(StoreError) in
      if !isRepaired.withLock({ $0 }) { throw failure }
    })
    let repo = makeRepo(on: PersistentDataStore(store))
    await #expect(throws: MomentsRepoError.store(failure)) { try await repo.getMoments(userID: "0") }
    isRepaired.withLock { $0 = true }
    return repo
  }

  @Test func `A refresh delivers the stored timeline to observers even if it is fresh`() async throws {
    let repo = await makeRepoOnRepairedStore()
    try await repo.refreshMoments(userID: "0")
    #expect(await repo.momentsDetails(userID: "0").first(1) == [.fixture()])
  }

  @Test func `Loading more delivers the stored timeline to observers even if it is complete`() async throws {
    let repo = await makeRepoOnRepairedStore()
    try await repo.loadMoreMoments(userID: "0")
    #expect(await repo.momentsDetails(userID: "0").first(1) == [.fixture()])
  }
}
