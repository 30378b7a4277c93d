import DataStore
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import Repository

/// The code of `Moments.md`, copied unchanged so that the compiler checks it.
enum MomentsExamples {
  static func firstExample(print: @escaping Print) async throws {
    let server = DemonstrationServer()
    let moments = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()),
      getMomentsByUserIDSession: server, updateMomentLikeSession: server)

    try await moments.getMoments(userID: "0")
    for await timeline in moments.momentsDetails(userID: "0") {
      print("\(timeline.userDetails.name) has \(timeline.moments.count) moments.")
      break
    }
  }

  static func observeAndLike(store: FileStore, server: APISession) async throws {
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(store),
      getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: server),
      updateMomentLikeSession: UpdateMomentLikeSession(apiSession: server))

    let screen = repo.momentsDetails(userID: "0").subscribe()
    try await repo.getMoments(userID: "0")
    try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0")
    for await timeline in screen {
      if timeline.moments.first?.isLiked == true { break }
    }
  }
}
