import DataStore
import Moments
import MomentsTesting
import Repository
import TestSupport
import Testing

/// The behavior of a repository for a user whose id isn't a valid key of the repository's store.
@Suite(.timeLimit(.minutes(15))) struct MomentsRepoKeyTests {
  private let getMomentsSession = GetMomentsByUserIDSessionStub { _ in .fixture() }
  private let updateLikeSession = UpdateMomentLikeSessionStub { _ in .fixture(likedMomentIDs: ["0"]) }

  @Test(arguments: ["", String(repeating: "a", count: 5_000)])
  func `No request is sent and no like is queued for a user whose id isn't a valid key`(
    userID: String
  ) async throws {
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()), getMomentsByUserIDSession: getMomentsSession,
      updateMomentLikeSession: updateLikeSession)
    // The encoded key has the collection `moments-details`, a dot, and the id: 15 + 1 + 5,000 characters.
    let fault: StoreError.InvalidKey = userID.isEmpty ? .emptyID : .tooLong(encodedLength: 5_016)
    let error = MomentsRepoError.store(.invalidKey(fault))
    await #expect(throws: error) { try await repo.getMoments(userID: userID) }
    await #expect(throws: error) { try await repo.reloadMoments(userID: userID) }
    await #expect(throws: error) { try await repo.loadMoreMoments(userID: userID) }
    await #expect(throws: error) {
      try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: userID)
    }
    #expect(getMomentsSession.requestedUserIDs == [])
    #expect(updateLikeSession.requests == [])
    #expect(try await repo.mutations.list() == [])
    #expect(await repo.pendingLikes(userID: userID).first(1) == [[:]])
  }
}
