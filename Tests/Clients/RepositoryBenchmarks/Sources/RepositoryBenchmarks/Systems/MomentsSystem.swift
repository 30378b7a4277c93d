internal import DataStore
internal import Foundation
internal import GraphQLClient
internal import Moments
internal import MomentsTesting
internal import Multicast
internal import Repository

/// A `MomentsRepo` whose sessions use a server in this process.
struct MomentsSystem: RepositorySystem {
  static let label = "MomentsRepo"

  private let repository: MomentsRepo

  init(_ server: Server<MomentLike>, _ store: any KeyValueStore) {
    repository = MomentsRepo(
      persistentDataStore: Self.dataStore(store),
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { userID throws(APISessionError) in
        try Self.performRequest { () throws(ServerUnreachable) in try server.fetch(userID) }
      },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { request throws(APISessionError) in
        let like = MomentLike(userID: request.userID, momentID: request.momentID, isLiked: request.isLiked)
        return try Self.performRequest { () throws(ServerUnreachable) in try server.make(like, on: request.userID) }
      },
      retryPolicy: .benchmarks)
  }

  private static func dataStore(_ store: some KeyValueStore) -> any PersistentDataStoreType {
    PersistentDataStore(store)
  }

  /// Performs a request, and throws a transport error if the server can't be reached.
  private static func performRequest(
    _ request: () throws(ServerUnreachable) -> MomentsDetails
  ) throws(APISessionError) -> MomentsDetails {
    do throws(ServerUnreachable) {
      return try request()
    } catch {
      throw .transport(URLError(.cannotConnectToHost))
    }
  }

  func values(of key: String) -> ObservedValues<MomentsDetails> { repository.momentsDetails(userID: key) }

  func reload(_ key: String) async throws {
    try await repository.getMoments(userID: key)
  }

  func perform(_ like: MomentLike, on key: String) async throws -> Bool {
    try await repository.updateLike(isLiked: like.isLiked, momentID: like.momentID, fromUserID: key) == .confirmed
  }

  func deliverAll() async throws {
    // If this subscriber falls behind, it loses only the oldest events. So it receives the event of the empty queue.
    let events = repository.events.subscribe()
    await repository.retryLikes()
    for await event in events {
      if case .queueLength(waiting: 0, _) = event { return }
    }
  }

  func waitForFailedAttempt() async {
    await repository.events.waitUntilRetryIsScheduled()
  }
}

extension MulticastStream<RepositoryEvent, Never> {
  /// Waits until an attempt has failed and a retry is scheduled.
  func waitUntilRetryIsScheduled() async {
    for await event in self {
      if case .retryScheduled = event { return }
    }
  }
}
