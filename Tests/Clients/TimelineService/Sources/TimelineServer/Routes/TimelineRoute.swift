internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import Moments
internal import Repository

/// `GET /timelines/{user}`: the timeline with the likes that wait, or a stored one if the request to the server fails.
struct TimelineRoute {
  let repo: MomentsRepo

  func add(to router: TimelineRouter) {
    router.serve(.get, "timelines/:user") { _, context in
      let userID = try context.parameters.require("user")
      do throws(MomentsRepoError) {
        try await repo.refreshMoments(userID: userID)
      } catch {
        guard try await isStored(userID, despite: error) else { throw error }
      }
      for await timeline in repo.momentsDetails(userID: userID) {
        return Response(
          status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
          body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder().encode(timeline))))
      }
      throw Problem(.serviceUnavailable, "The service is stopping.")
    }
  }

  /// Whether there is a stored timeline to show although the request to the server failed.
  private func isStored(_ userID: String, despite error: MomentsRepoError) async throws -> Bool {
    guard case .session = error else { return false }
    for await state in repo.loadState(userID: userID) {
      switch state {
      case .idle, .loading: continue
      // Another request has succeeded meanwhile.
      case .loaded: return true
      case .failed(_, let previous): return previous != nil
      }
    }
    return false
  }
}
