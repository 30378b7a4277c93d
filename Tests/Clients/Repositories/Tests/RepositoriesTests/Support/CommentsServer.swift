import Foundation
import Repositories
import Repository
import RepositoryTesting
import Synchronization

/// An in-memory server of comments on posts.
final class CommentsServer: Sendable {
  private let server = InMemoryServer<String, Paged<Comment>, CommentsSource.Mutation>(empty: Paged())

  /// Returns all comments on a post, the newest first.
  func comments(on postID: String) -> [Comment] { server.value(of: postID).elements }

  /// The applied changes in order, each listed once.
  var appliedChanges: [CommentsSource.Mutation] { server.applied.map(\.mutation) }

  /// The ids of all received changes, including repeated ones.
  var receivedIDs: [String] { server.received.map(\.rawValue) }

  /// Changes the comments on a post, which simulates a change by another user.
  func edit(_ postID: String, _ change: (inout Paged<Comment>) -> Void) {
    server.edit(postID, change)
  }

  func page(of postID: String, after cursor: String?, limit: Int) -> CommentsPage {
    CommentsPage(server.bidirectionalPage(of: postID, after: cursor, limit: limit))
  }

  func page(of postID: String, before cursor: String, limit: Int) -> CommentsPage {
    CommentsPage(server.bidirectionalPage(of: postID, before: cursor, limit: limit))
  }

  func apply(_ mutation: CommentsSource.Mutation, to postID: String, requestID: String) throws(CommentsError) {
    do throws(MutationConflict) {
      _ = try server.apply(mutation, to: postID, id: MutationID(rawValue: requestID))
    } catch {
      throw .refused
    }
  }
}

extension CommentsPage {
  init(_ page: Paged<Comment>) {
    self.init(page.elements, nextCursor: page.nextCursor, previousCursor: page.previousCursor)
  }
}

/// A client of a ``CommentsServer``, over a network that a test controls.
final class CommentsTestClient: CommentsClient {
  /// A request, reduced to the parts that tests check.
  enum Request: Hashable, Sendable {
    case page(after: Comment.ID?)
    case previousPage(before: Comment.ID?)
    case add(Comment.ID)
    case edit(Comment.ID, String)
    case delete(Comment.ID)
  }

  /// A closure that runs while a request or its reply is in transit.
  typealias Hop = @Sendable (Request) async throws(CommentsError) -> Void

  private let server: CommentsServer
  private let onRequest: Hop
  private let onReply: Hop
  private let recorded = Mutex<[Request]>([])

  /// Creates a client.
  ///
  /// - Parameters:
  ///   - server: The server.
  ///   - onRequest: Called before the server receives a request. If it throws, the server doesn't receive the request.
  ///   - onReply: Called before the client receives a reply other than a refusal. If it throws, the client doesn't
  ///     receive the reply.
  init(
    _ server: CommentsServer,
    onRequest: @escaping Hop = { (_) async throws(CommentsError) in },
    onReply: @escaping Hop = { (_) async throws(CommentsError) in }
  ) {
    self.server = server
    self.onRequest = onRequest
    self.onReply = onReply
  }

  /// Returns a client that can't reach the server.
  static func offline(_ server: CommentsServer) -> CommentsTestClient {
    CommentsTestClient(server, onRequest: { (_) async throws(CommentsError) in throw .offline })
  }

  /// The requests in the order in which they were made.
  var requests: [Request] { recorded.withLock { $0 } }

  func comments(on postID: String, after cursor: String?, limit: Int) async throws(CommentsError) -> CommentsPage {
    try await exchange(.page(after: cursor.flatMap { UUID(uuidString: $0) })) {
      server.page(of: postID, after: cursor, limit: limit)
    }
  }

  func comments(on postID: String, before cursor: String, limit: Int) async throws(CommentsError) -> CommentsPage {
    try await exchange(.previousPage(before: UUID(uuidString: cursor))) {
      server.page(of: postID, before: cursor, limit: limit)
    }
  }

  func add(_ comment: Comment, to postID: String, requestID: String) async throws(CommentsError) {
    try await exchange(.add(comment.id)) { () throws(CommentsError) in
      try server.apply(.add(comment), to: postID, requestID: requestID)
    }
  }

  func edit(_ id: Comment.ID, text: String, on postID: String, requestID: String) async throws(CommentsError) {
    try await exchange(.edit(id, text)) { () throws(CommentsError) in
      try server.apply(.edit(id, text: text), to: postID, requestID: requestID)
    }
  }

  func delete(_ id: Comment.ID, from postID: String, requestID: String) async throws(CommentsError) {
    try await exchange(.delete(id)) { () throws(CommentsError) in
      try server.apply(.delete(id), to: postID, requestID: requestID)
    }
  }

  private func exchange<Reply>(
    _ request: Request, _ serve: () throws(CommentsError) -> Reply
  ) async throws(CommentsError) -> Reply {
    recorded.withLock { $0.append(request) }
    try await onRequest(request)
    let reply = try serve()
    try await onReply(request)
    return reply
  }
}
