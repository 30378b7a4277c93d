import Repository

/// The code of Repository.md, to the letter: what is there compiles because it compiles here.
enum RepositoryExamples {
  struct Profile: Equatable, Sendable {
    let name: String
  }

  struct ProfileError: Error {}

  static func share(
    fetch: @escaping @Sendable (String) async throws(ProfileError) -> Profile, print: Print
  ) async throws {
    let requests = SharedRequests<String, Profile, ProfileError>()
    async let list = requests.value(for: "0") { () async throws(ProfileError) in try await fetch("0") }
    async let detail = requests.value(for: "0") { () async throws(ProfileError) in try await fetch("0") }
    print(try await list == detail)  // true, after one request
  }
}
