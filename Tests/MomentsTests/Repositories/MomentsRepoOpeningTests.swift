import DataStore
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

/// What a repository does while its store cannot be observed yet, or could not.
@Suite(.timeLimit(.minutes(15))) struct MomentsRepoOpeningTests {
  private func makeRepo(on store: any PersistentDataStoreType) -> MomentsRepo {
    MomentsRepo(
      persistentDataStore: store,
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ in .fixture() },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ in .fixture(likedMomentIDs: ["0"]) })
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

  @Test func `A refresh delivers the stored timeline to observers even if it is fresh`() async throws {
    let repo = await repoOnMendedStore()
    try await repo.refreshMoments(userID: "0")
    #expect(await repo.momentsDetails(userID: "0").first(1) == [.fixture()])
  }

  @Test func `Loading more delivers the stored timeline to observers even if it is complete`() async throws {
    let repo = await repoOnMendedStore()
    try await repo.loadMoreMoments(userID: "0")
    #expect(await repo.momentsDetails(userID: "0").first(1) == [.fixture()])
  }
}
