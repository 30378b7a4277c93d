internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import Moments
internal import TimelineServer

/// The service as it is usually written: timelines in memory, and a dictionary of `AsyncStream` continuations.
///
/// It guarantees less than a service with a repository. Nothing is durable, and a like fails while the server can't be
/// reached. Overlapping likes may be shown in an order other than the one in which the server applied them. The buffer
/// of a slow browser grows without a limit.
actor UsualService {
  private let upstream: Upstream
  private var newest: [String: TimelineEvent] = [:]
  private var continuations: [String: [UUID: AsyncStream<ByteBuffer>.Continuation]] = [:]

  init(upstream: Upstream) {
    self.upstream = upstream
  }

  private func events(of userID: String) async throws -> AsyncStream<ByteBuffer> {
    if newest[userID] == nil { try publish(await upstream.getMoments(userID: userID), userID) }
    let id = UUID()
    let (stream, continuation) = AsyncStream.makeStream(of: ByteBuffer.self)
    continuation.onTermination = { _ in Task { await self.remove(id, userID) } }
    continuations[userID, default: [:]][id] = continuation
    if let event = newest[userID] { continuation.yield(event.bytes) }
    return stream
  }

  private func remove(_ id: UUID, _ userID: String) {
    continuations[userID]?[id] = nil
  }

  private func like(_ isLiked: Bool, _ momentID: String, _ userID: String) async throws {
    try publish(await upstream.updateLike(isLiked, momentID: momentID, fromUserID: userID), userID)
  }

  private func publish(_ timeline: MomentsDetails, _ userID: String) throws {
    let event = try TimelineEvent(timeline, waiting: [])
    newest[userID] = event
    for continuation in continuations[userID, default: [:]].values { continuation.yield(event.bytes) }
  }

  nonisolated func application(_ address: BindAddress) -> some ApplicationProtocol {
    struct Like: Decodable {
      let isLiked: Bool
    }

    let router = Router()
    router.get("timelines/:user/events") { _, context in
      let events = try await self.events(of: context.parameters.require("user"))
      return Response(
        status: .ok, headers: [.contentType: "text/event-stream"],
        body: ResponseBody { writer in
          for await event in events { try await writer.write(event) }
          try await writer.finish(nil)
        })
    }
    router.post("timelines/:user/moments/:moment/like") { request, context in
      let body = try await request.body.collect(upTo: 4_096)
      let like = try JSONDecoder().decode(Like.self, from: Data(body.readableBytesView))
      try await self.like(
        like.isLiked, context.parameters.require("moment"), context.parameters.require("user"))
      return HTTPResponse.Status.ok
    }
    return Application(router: router, configuration: .init(address: address))
  }
}
