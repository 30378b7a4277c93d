internal import DataStore
internal import Foundation
internal import Moments
internal import MomentsTesting
internal import Repository

/// A repository of the demonstration server, and the network between them.
struct Demonstration {
  let repo: MomentsRepo
  let network: DemoNetwork

  /// Opens the demonstration with its stored data.
  ///
  /// - Parameters:
  ///   - store: The store of the timelines, and of the likes that the server doesn't have yet.
  ///   - serverStore: The store of the server's own data and of the network's state; `nil` to store neither.
  ///   - latency: The duration of a request.
  ///   - leadership: Decides whether this process sends likes.
  static func open(
    _ store: any PersistentDataStoreType, serverStore: FileStore?, latency: Duration = .zero,
    leadership: any Leadership = StoreLeadership()
  ) async throws(StoreError) -> Demonstration {
    let backend =
      if let serverStore { try await DemonstrationServer.open(serverStore, latency: latency) } else {
        DemonstrationServer(latency: latency)
      }
    let repo = MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: backend, updateMomentLikeSession: backend,
      freshness: TimelineCommand.freshness, leadership: leadership)
    return Demonstration(repo: repo, network: DemoNetwork(of: backend, store: serverStore))
  }

  /// Returns the store of the demonstration server's own data and of the network's state, inside a data folder.
  static func serverStore(in folder: URL) -> FileStore { FileStore(folder: folder.appending(path: "demo-server")) }
}
