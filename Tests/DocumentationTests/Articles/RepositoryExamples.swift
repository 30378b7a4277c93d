import DataStore
import Foundation
import Multicast
import Repository

/// The code of `Repository.md`, copied unchanged so that the compiler checks it.
enum RepositoryExamples {
  struct Comment: Codable, Equatable, Identifiable, Sendable {
    var id = UUID()
    var text: String
  }

  struct CommentsPage: Sendable {
    let comments: [Comment]
    let nextCursor: String?
  }

  struct Profile: Codable, Equatable, Sendable {
    let name: String
  }

  struct Draft: Codable, Equatable, Sendable {
    var text = ""
  }

  static func firstExample(print: @escaping Print) async throws {
    struct Note: Codable, Equatable, Sendable {
      var text = ""
    }

    let notes = LocalRepository<String, Note>("notes", default: Note(), store: InMemoryStore())
    try await notes.update("river") { $0.text = "On the river" }
    for await note in notes.values(of: "river") {
      print(note.text)
      break
    }
  }

  enum ClientError: Error {
    case offline, lostReply, signedOut, refused
  }

  /// Stands in for the existing client of an app.
  protocol Client: Sendable {
    func comments(on postID: String, after cursor: String?, limit: Int) async throws(ClientError) -> CommentsPage
    func add(_ comment: Comment, to postID: String, requestID: String) async throws(ClientError)
    func edit(_ id: Comment.ID, text: String, requestID: String) async throws(ClientError)
    func delete(_ id: Comment.ID, requestID: String) async throws(ClientError)
    func profile(of userID: String) async throws(ClientError) -> Profile
  }

  struct CommentsSource: PagedSource, MutableSource {
    enum Mutation: RepositoryMutation {
      case add(Comment)
      case edit(Comment.ID, text: String)
      case delete(Comment.ID)

      func apply(to comments: inout Paged<Comment>) {
        switch self {
        case .add(let comment): comments.insertFirst(comment)
        case .edit(let id, let text): comments.update(id) { $0.text = text }
        case .delete(let id): comments.remove(id)
        }
      }
    }

    static var empty: Paged<Comment>? { Paged() }
    let name = "comments"
    let client: any Client

    func fetch(_ postID: String, after cursor: String?, limit: Int) async throws(ClientError) -> Paged<Comment> {
      let page = try await client.comments(on: postID, after: cursor, limit: limit)
      return Paged(page.comments, nextCursor: page.nextCursor)
    }

    func send(
      _ mutation: Mutation, to postID: String, id: MutationID
    ) async throws(ClientError) -> MutationReply<Paged<Comment>> {
      switch mutation {
      case .add(let comment): try await client.add(comment, to: postID, requestID: id.rawValue)
      case .edit(let comment, let text): try await client.edit(comment, text: text, requestID: id.rawValue)
      case .delete(let comment): try await client.delete(comment, requestID: id.rawValue)
      }
      return .done
    }

    func disposition(of failure: ClientError) -> FailureDisposition {
      switch failure {
      case .offline: .retryLater()
      case .lostReply: .unknownOutcome
      case .signedOut: .needsSignIn
      case .refused: .refused
      }
    }
  }

  static func comments(
    _ client: any Client, _ store: any KeyValueStore, postID: String, comment: Comment, show: ([Comment]) -> Void
  ) async throws {
    let comments = SyncedRepository(CommentsSource(client: client), store: store)

    try await comments.reload(postID)
    try await comments.loadMore(postID)
    try await comments.perform(.add(comment), on: postID)
    for await page in comments.values(of: postID) { show(page.elements) }
  }

  static func observeStates(
    _ comments: SyncedRepository<CommentsSource>, postID: String, show: ([Comment]) -> Void,
    showPlaceholder: (_ isLoading: Bool) -> Void, showFailure: (RepositoryError<ClientError>?) -> Void
  ) async {
    for await state in comments.states(of: postID) {
      switch state.presence {
      case .value(let page): show(page.elements)
      case .nothing: showPlaceholder(state.isLoading)
      case .notRead: showFailure(state.failure)
      }
    }
  }

  static func makeRepositories(_ client: any Client, _ store: any KeyValueStore) -> [Any] {
    let profiles = SyncedRepository("profile", store: store, fetch: client.profile(of:))
    let drafts = LocalRepository<String, Draft>("drafts", default: Draft(), store: store)
    return [profiles, drafts]
  }

  static func observeAndInvalidate<Source: RepositorySource>(
    _ profiles: SyncedRepository<Source>, userID: String, show: (Profile) -> Void
  ) async where Source.Key == String, Source.Value == Profile {
    for await profile in profiles.values(of: userID, loading: .whileObserved(every: .seconds(30))) { show(profile) }

    await profiles.invalidate(.key(userID))
  }

  static func background(
    _ comments: SyncedRepository<CommentsSource>, schedule: (Int?, Date?) -> Void, log: (String) -> Void
  ) async {
    func scheduleAnotherTask(for count: Int) { schedule(count, nil) }
    func scheduleAnotherTask(at date: Date) { schedule(nil, date) }

    await comments.suspend()

    switch await comments.drain(within: .seconds(20)) {
    case .empty: break
    case .remaining(let count): scheduleAnotherTask(for: count)
    case .paused(.backingOff(let date)): scheduleAnotherTask(at: date)
    case .paused(let reason): log("\(reason)")
    }
  }
}
