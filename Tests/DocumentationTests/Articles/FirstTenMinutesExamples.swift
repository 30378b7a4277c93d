import DataStore
import Moments
import Multicast
import SignIn
import Todo

/// The code of FirstTenMinutes.md, to the letter: what is there compiles because it compiles here.
enum FirstTenMinutesExamples {
  struct Profile: Codable, Sendable, Equatable {
    var name: String
  }

  actor ProfileRepo {
    private let store: FileStore
    private let fetch: @Sendable (String) async throws -> Profile

    init(store: FileStore, fetch: @escaping @Sendable (String) async throws -> Profile) {
      self.store = store
      self.fetch = fetch
    }

    nonisolated func profiles(userID: String) async throws -> MulticastStream<StoreChange<Profile>, Never> {
      try await store.changes(of: StoreKey("profile", id: userID))
    }

    func getProfile(userID: String) async throws {
      try await store.save(fetch(userID), for: StoreKey("profile", id: userID))
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
    } catch {
      print(error)
    }
    for await state in states {
      print(state)  // unsigned, signingIn, signed(jakelin)
      if !state.isBusy, state != .unsigned { break }
    }
  }

  @MainActor
  static func view(_ viewModel: MomentsTimelineViewModel) -> DocCommentExamples.Screen {
    typealias Screen = DocCommentExamples.Screen
    return
      Screen()
      .task { await viewModel.run() }
      .refreshable { await viewModel.loadItems() }
  }
}
