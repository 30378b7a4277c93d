import Foundation
import Repositories
import Repository
import RepositoryTesting

/// A client of an in-memory server, over a network that delays, loses and duplicates packets.
struct SimulatedCommentsClient: CommentsClient {
  typealias Server = InMemoryServer<String, Paged<Comment>, CommentsSource.Mutation>

  let server: Server
  let network: SimulatedNetwork

  func comments(on postID: String, after cursor: String?, limit: Int) async throws(CommentsError) -> CommentsPage {
    try await exchange("page") { [server] in
      .success(CommentsPage(server.bidirectionalPage(of: postID, after: cursor, limit: limit)))
    }
  }

  func comments(on postID: String, before cursor: String, limit: Int) async throws(CommentsError) -> CommentsPage {
    try await exchange("previous page") { [server] in
      .success(CommentsPage(server.bidirectionalPage(of: postID, before: cursor, limit: limit)))
    }
  }

  func add(_ comment: Comment, to postID: String, requestID: String) async throws(CommentsError) {
    try await send(.add(comment), to: postID, requestID)
  }

  func edit(_ id: Comment.ID, text: String, on postID: String, requestID: String) async throws(CommentsError) {
    try await send(.edit(id, text: text), to: postID, requestID)
  }

  func delete(_ id: Comment.ID, from postID: String, requestID: String) async throws(CommentsError) {
    try await send(.delete(id), to: postID, requestID)
  }

  private func send(
    _ mutation: CommentsSource.Mutation, to postID: String, _ requestID: String
  ) async throws(CommentsError) {
    try await exchange("change") { [server] in
      do throws(MutationConflict) {
        _ = try server.apply(mutation, to: postID, id: MutationID(rawValue: requestID))
        return .success(())
      } catch {
        return .failure(.refused)
      }
    }
  }

  private func exchange<Reply: Sendable>(
    _ label: String, _ serve: @escaping @Sendable () -> Result<Reply, CommentsError>
  ) async throws(CommentsError) -> Reply {
    let reply: Result<Reply, CommentsError>
    do throws(SimulatedNetwork.Failure) {
      reply = try await network.exchange(label, serve)
    } catch {
      switch error {
      case .unreachable: throw .offline
      case .noReply: throw .lostReply
      }
    }
    return try reply.get()
  }
}
