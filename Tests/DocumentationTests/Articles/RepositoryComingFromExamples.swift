import DataStore
import Repository

/// The code of Repository's `ComingFrom.md`, copied unchanged so that the compiler checks it.
enum RepositoryComingFromExamples {
  typealias Comment = RepositoryExamples.Comment
  typealias CommentsSource = RepositoryExamples.CommentsSource
  typealias ClientError = RepositoryExamples.ClientError

  struct Profile: Codable, Equatable, Sendable {
    var name: String
  }

  protocol ProfileClient: Sendable {
    func profile(of userID: String) async throws(ClientError) -> Profile
    func rename(_ userID: String, to name: String, requestID: String) async throws(ClientError) -> Profile
  }

  struct Rename: RepositoryMutation {
    let name: String

    func apply(to profile: inout Profile) { profile.name = name }
  }

  struct ProfileSource: MutableSource {
    let name = "profile"
    let client: any ProfileClient

    func fetch(_ userID: String) async throws(ClientError) -> Profile {
      try await client.profile(of: userID)
    }

    func send(_ rename: Rename, to userID: String, id: MutationID) async throws(ClientError) -> MutationReply<Profile> {
      .value(try await client.rename(userID, to: rename.name, requestID: id.rawValue))
    }

    func disposition(of failure: ClientError) -> FailureDisposition {
      failure == .refused ? .refused : .unknownOutcome
    }
  }

  static func tanStackQuery(_ client: any ProfileClient, _ store: any KeyValueStore, userID: String) async throws {
    let profiles = SyncedRepository(ProfileSource(client: client), store: store)
    try await profiles.refresh(userID)
    try await profiles.perform(Rename(name: "Ann"), on: userID)
  }

  static func apollo(
    _ client: any RepositoryExamples.Client, _ store: any KeyValueStore, postID: String, id: Comment.ID
  ) async throws {
    let comments = SyncedRepository(CommentsSource(client: client), store: store)
    try await comments.perform(.delete(id), on: postID)
  }

  struct Draft: Codable, Equatable, Sendable {
    var title = ""
  }

  struct DraftsSource: MutableSource {
    enum Mutation: RepositoryMutation {
      case setTitle(String)

      func apply(to draft: inout Draft) {
        switch self {
        case .setTitle(let title): draft.title = title
        }
      }
    }

    let name = "drafts"

    func fetch(_ draftID: String) async throws(ClientError) -> Draft { Draft() }

    func send(
      _ mutation: Mutation, to draftID: String, id: MutationID
    ) async throws(ClientError) -> MutationReply<Draft> { .done }

    func disposition(of failure: ClientError) -> FailureDisposition { .unknownOutcome }
  }

  static func store5(_ drafts: SyncedRepository<DraftsSource>, id: String) async throws {
    try await drafts.perform(.setTitle("River"), on: id)
  }

  enum Replicache {
    enum Mutation: RepositoryMutation {
      case delete(Comment.ID)

      func apply(to comments: inout Paged<Comment>) {
        switch self {
        case .delete(let id): comments.remove(id)
        }
      }
    }
  }
}
