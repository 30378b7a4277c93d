internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import Moments
internal import Repository

/// `GET /health`: status 200 while the queue of likes can be read from the store, otherwise 503.
struct HealthRoute {
  private struct Health: Encodable {
    let leadership: LeadershipStatus?
    let waitingLikes: Int
  }

  let repo: MomentsRepo

  func add(to router: TimelineRouter) {
    router.serve(.get, "health") { _, _ in
      let report = await repo.report()
      if let failure = report.storeFailure { throw Problem(.serviceUnavailable, failure) }
      let health = Health(
        leadership: report.leadership, waitingLikes: report.lanes.reduce(0) { $0 + $1.count })
      return Response(
        status: .ok, headers: [.contentType: "application/json", .cacheControl: "no-store"],
        body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder().encode(health))))
    }
  }
}
