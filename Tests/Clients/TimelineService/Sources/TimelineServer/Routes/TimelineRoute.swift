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
      if let isStored = Self.isStored(in: state) { return isStored }
    }
    return false
  }

  /// Returns whether a timeline is stored, according to the load state after a failed request; `nil` while another
  /// request is in flight.
  static func isStored(in state: MomentsLoadState) -> Bool? {
    switch state {
    case .loading: nil
    // The error is no longer part of the state if another request has begun meanwhile, and was cancelled or succeeded.
    case .idle: false
    case .loaded: true
    case .failed(_, let previous): previous != nil
    }
  }
}
