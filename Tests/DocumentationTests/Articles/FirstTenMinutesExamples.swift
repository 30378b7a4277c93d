import DataStore
import Moments
import Multicast
import Repository
import SignIn
import Todo

/// The code of `FirstTenMinutes.md`, copied unchanged so that the compiler checks it.
enum FirstTenMinutesExamples {
  struct Profile: Codable, Sendable, Equatable {
    var name: String
  }

  protocol ProfileClient: Sendable {
    func profile(of userID: String) async throws(ClientError) -> Profile
  }

  typealias ClientError = RepositoryExamples.ClientError

  static func showProfile(
    from client: any ProfileClient, storedIn store: any KeyValueStore, print: Print
  ) async throws {
    let profiles = SyncedRepository("profile", store: store, fetch: client.profile(of:))

    let screen = profiles.values(of: "0").subscribe()
    try await profiles.reload("0")
    for await profile in screen {
      print(profile.name)
      if profile.name == "Jake" { break }
    }
  }

  @MainActor
  static func addTodo(to list: TodoList, print: Print) async throws {
    let detail = TodoDetailViewModel()
    let added = detail.todo.subscribe()
    detail.name = "Buy milk"
    detail.done()

    for await item in added { try await list.add(item) }
    print("Finish adding a new todo.")
  }

  static func signIn(_ service: UserService, print: Print) async {
    let states = service.signStates.subscribe()
    do {
      let user = try await service.performSignin(username: "jakelin", password: Password("secret"))
      print("Hello \(user.username)")
      for await state in states {
        print(state)  // unsigned, signingIn, signed(jakelin)
        if state == .signed(user) { break }
      }
    } catch {
      print(error)
    }
  }

  @MainActor
  static func makeScreen(for viewModel: MomentsTimelineViewModel) -> DocCommentExamples.Screen {
    typealias Screen = DocCommentExamples.Screen
    return
      Screen()
      .task { await viewModel.run() }
      .refreshable { await viewModel.loadItems() }
  }
}
