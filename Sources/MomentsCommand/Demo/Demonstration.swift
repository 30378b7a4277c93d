internal import DataStore
internal import Foundation
internal import Moments
internal import MomentsTesting
internal import Repository

/// A repository with the demonstration server, and the network between them.
struct Demonstration {
  let repo: MomentsRepo
  let network: DemoNetwork

  /// Opens what is kept.
  ///
  /// - Parameters:
  ///   - store: Where timelines are kept, and likes until the server has them.
  ///   - server: Where the server keeps what is its own; `nil` for one that forgets.
  ///   - latency: How long a request takes.
  ///   - leadership: Whether this process sends likes.
  static func open(
    _ store: any PersistentDataStoreType, server: FileStore?, latency: Duration = .zero,
    leadership: any Leadership = StoreLeadership()
  ) async throws(StoreError) -> Demonstration {
    let backend =
      if let server { try await DemonstrationServer.open(server, latency: latency) } else {
        DemonstrationServer(latency: latency)
      }
    let repo = MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: backend, updateMomentLikeSession: backend,
      freshness: TimelineCommand.freshness, leadership: leadership)
    return Demonstration(repo: repo, network: DemoNetwork(of: backend, store: server))
  }

  /// Where the server in a data folder keeps what is its own.
  static func server(in folder: URL) -> FileStore { FileStore(folder: folder.appending(path: "demo-server")) }
}
