internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import Moments
internal import Repository

/// `GET /timelines/{user}`: the timeline with pending likes applied.
///
/// If the request to the server fails, the stored timeline is served, if there is one.
struct TimelineRoute {
  let repo: MomentsRepo

  func add(to router: TimelineRouter) {
    router.serve(.get, "timelines/:user") { _, context in
      let userID = try context.parameters.require("user")
      do throws(MomentsRepoError) {
        try await repo.refreshMoments(userID: userID)
      } catch {
        guard try await canServeStoredTimeline(of: userID, despite: error) else { throw error }
      }
      for await timeline in repo.momentsDetails(userID: userID) {
        return Response(
          status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
          body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder().encode(timeline))))
      }
      throw Problem(.serviceUnavailable, "The service is stopping.")
    }
  }

  /// Returns whether the request to the server failed but a stored timeline can be served.
  private func canServeStoredTimeline(of userID: String, despite error: MomentsRepoError) async throws -> Bool {
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
    // The next two states have no error, because another request has succeeded or was cancelled since the failure.
    // Without a stored timeline the state is `idle`, with one it is `loaded`.
    case .idle: false
    case .loaded: true
    case .failed(_, let previous): previous != nil
    }
  }
}
