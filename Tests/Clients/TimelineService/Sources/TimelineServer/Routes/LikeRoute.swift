internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import Moments
internal import NIOCore

/// `POST /timelines/{user}/moments/{id}/like` with `{"isLiked": true}`: status 200 if the like is confirmed, 202 if it
/// is queued; see `MomentLikeOutcome`.
///
/// A client that gets no answer can repeat the request with the same `Idempotency-Key`. It then gets the answer to the
/// first request, unless that request failed; see ``KeptAnswers``.
struct LikeRoute {
  private struct Like: Codable, Equatable, Sendable {
    let isLiked: Bool
  }

  private struct Answer: Encodable {
    let outcome: String
  }

  /// The maximum size of a request's body, in bytes.
  private static let maximumBodySize = 4_096

  let repo: MomentsRepo
  let answers = KeptAnswers<MomentLikeOutcome>(maximumCount: 4_096)

  func add(to router: TimelineRouter) {
    router.serve(.post, "timelines/:user/moments/:moment/like") { request, context in
      let (userID, momentID) = (try context.parameters.require("user"), try context.parameters.require("moment"))
      let key = try Self.key(of: request)
      let like = try await Self.like(in: request)
      let outcome = try await answers.answer(
        to: "\(userID)/\(key)", question: "\(momentID) \(like.isLiked)"
      ) { [repo] in
        try await repo.updateLike(isLiked: like.isLiked, momentID: momentID, fromUserID: userID)
      }
      let answer = Answer(outcome: outcome == .confirmed ? "confirmed" : "queued")
      return Response(
        status: outcome == .confirmed ? .ok : .accepted, headers: [.contentType: "application/json"],
        body: ResponseBody(byteBuffer: ByteBuffer(bytes: try JSONEncoder().encode(answer))))
    }
  }

  private static func key(of request: Request) throws -> String {
    guard let key = request.headers[.idempotencyKey], (1...255).contains(key.count) else {
      throw Problem(.badRequest, "Give each like an Idempotency-Key of 1 to 255 characters, the same for each attempt.")
    }
    return key
  }

  private static func like(in request: Request) async throws -> Like {
    let body: ByteBuffer
    do {
      body = try await request.body.collect(upTo: Self.maximumBodySize)
    } catch is NIOTooManyBytesError {
      throw Problem(.contentTooLarge, "The body of a like has at most \(Self.maximumBodySize) bytes.")
    }
    do {
      return try JSONDecoder().decode(Like.self, from: Data(body.readableBytesView))
    } catch {
      throw Problem(.badRequest, #"The body of a like is {"isLiked": true} or {"isLiked": false}."#)
    }
  }
}

extension HTTPField.Name {
  static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
}
