import DataStore
import Foundation
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository

/// A repository on a real store and stubbed sessions.
///
/// Its time stands still unless a test says otherwise, so that no wait ends by itself on a slow machine.
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
  /// Waits until no like waits to be sent, or is being sent.
  func sendsAll() async {
    for await likes in mutations.changes where !likes.contains(where: { $0.isLive }) { return }
  }
}

extension PendingMutation {
  /// Whether it will be sent, or is being sent.
  var isLive: Bool {
    switch standing {
    case .waiting, .inFlight, .needsSignIn: true
    case .conflicted, .refused: false
    }
  }
}

extension AsyncSequence where Failure == Never, Element: Sendable {
  /// The first `count` elements; fewer when the sequence ends before.
  func first(_ count: Int) async -> [Element] {
    var elements: [Element] = []
    for await element in self {
      elements.append(element)
      if elements.count == count { break }
    }
    return elements
  }
}

/// A new empty folder, removed when this is released.
final class TemporaryFolder: Sendable {
  let url: URL

  init() throws {
    url = FileManager.default.temporaryDirectory.appending(path: "moments-tests-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
  }

  deinit {
    // What is left behind in the temporary folder harms nobody, so a failure needs no answer.
    try? FileManager.default.removeItem(at: url)
  }
}
