import DataStore
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository

/// A repository on an in-memory store and stubbed sessions.
///
/// By default its clock stands still, so that no delay or time limit elapses, however slow the machine is.
struct RepoHarness: Sendable {
  let store: PersistentDataStore<InMemoryStore>
  let getMoments: GetMomentsByUserIDSessionStub
  let updateLike: UpdateMomentLikeSessionStub
  let repo: MomentsRepo

  init(
    store: PersistentDataStore<InMemoryStore> = PersistentDataStore(InMemoryStore()),
    getMoments: @escaping @Sendable (String) async throws(APISessionError) -> MomentsDetails = { userID in
      .fixture(userID: userID)
    },
    updateLike:
      @escaping @Sendable (
        UpdateMomentLikeSessionStub.Request
      ) async throws(APISessionError) -> MomentsDetails = { request in
        .fixture(userID: request.userID, likedMomentIDs: request.isLiked ? [request.momentID] : [])
      },
    clock: any Clock<Duration> = ManualClock()
  ) {
    self.store = store
    self.getMoments = GetMomentsByUserIDSessionStub(reply: getMoments)
    self.updateLike = UpdateMomentLikeSessionStub(reply: updateLike)
    repo = MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: self.getMoments, updateMomentLikeSession: self.updateLike,
      clock: clock)
  }
}

extension MomentsRepo {
  /// Waits until no like is queued or in flight.
  func waitUntilSent() async {
    for await likes in mutations.changes where !likes.contains(where: { $0.isLive }) { return }
  }
}

extension PendingMutation {
  /// Whether the mutation will be sent, or is in flight.
  var isLive: Bool {
    switch standing {
    case .waiting, .inFlight, .needsSignIn: true
    case .conflicted, .refused: false
    }
  }
}
