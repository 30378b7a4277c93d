import DataStore
import Foundation
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

/// The behavior of a repository whose store couldn't be observed at first.
@Suite(.timeLimit(.minutes(15))) struct MomentsRepoOpeningTests {
  private static let storedTimeline = MomentsDetails.fixture(momentIDs: ["stored"])

  private let session = GetMomentsByUserIDSessionStub { _ in .fixture(momentIDs: ["fetched"]) }

  /// Returns a repository that failed to observe its store, and an observer that subscribed before the failure.
  ///
  /// The store works again, and contains a complete timeline that was just saved.
  private func makeRepoOnRepairedStore() async throws -> (MomentsRepo, MulticastSubscription<MomentsDetails, Never>) {
    let time = Date(timeIntervalSince1970: 1_543_665_600)
    let memoryStore = InMemoryStore(now: { time })
    try await PersistentDataStore(memoryStore).save(momentsDetails: Self.storedTimeline, userID: "0")
    let failure = StoreError.readFailed(SystemError(code: EIO, operation: "read", path: "/store"))
    let isRepaired = Lock(false)
    let store = InterposedStore(
      memoryStore,
      beforeObserving: { _ throws(StoreError) in
        if !isRepaired.withLock({ $0 }) { throw failure }
      })
    // No time passes, so the timeline stays fresh, and the repository doesn't repeat the failed observation by itself.
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(store), getMomentsByUserIDSession: session,
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ in .fixture() }, clock: ManualClock(), now: { time })
    let observer = repo.momentsDetails(userID: "0").subscribe()
    await #expect(throws: MomentsRepoError.store(failure)) { try await repo.getMoments(userID: "0") }
    isRepaired.withLock { $0 = true }
    return (repo, observer)
  }

  @Test func `A refresh delivers the stored timeline to observers even if it is fresh`() async throws {
    let (repo, observer) = try await makeRepoOnRepairedStore()
    let earlierRequests = session.requestedUserIDs
    try await repo.refreshMoments(userID: "0")
    #expect(await observer.first(1) == [Self.storedTimeline])
    #expect(session.requestedUserIDs == earlierRequests)
  }

  @Test func `Loading more delivers the stored timeline to observers even if it is complete`() async throws {
    let (repo, observer) = try await makeRepoOnRepairedStore()
    let earlierRequests = session.requestedUserIDs
    try await repo.loadMoreMoments(userID: "0")
    #expect(await observer.first(1) == [Self.storedTimeline])
    #expect(session.requestedUserIDs == earlierRequests)
  }
}
