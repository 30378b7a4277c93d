import DataStore
import Repository

/// The code of Repository.md, to the letter: what is there compiles because it compiles here.
enum RepositoryExamples {
  struct Profile: Codable, Equatable, Sendable {
    let name: String
  }

  struct Draft: Codable, Equatable, Sendable {
    var text = ""
  }

  struct ClientError: Error {}

  protocol Client: Sendable {
    func profile(of userID: String) async throws(ClientError) -> Profile
  }

  static func make(_ client: any Client, _ store: any KeyValueStore) -> [Any] {
    let profiles = SyncedRepository("profile", store: store) { (userID: String) async throws(ClientError) in
      try await client.profile(of: userID)
    }
    let drafts = LocalRepository<String, Draft>("drafts", default: Draft(), store: store)
    return [profiles, drafts]
  }
}
