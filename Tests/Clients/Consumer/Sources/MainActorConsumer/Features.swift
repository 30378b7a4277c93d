import DataStore
import GraphQLClient
import Moments
import MomentsTesting
import MulticastTesting
import SignIn
import Todo

extension MainActorConsumer {
  static func showTimeline() async throws {
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()),
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { .fixture(userID: $0) },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { .fixture(likedMomentIDs: [$0.momentID]) })
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: repo)
    let running = Task { [weak model] in await model?.run() }
    await model.loadItems()
    guard case .moment(let moment) = model.listItems.last else { preconditionFailure("The timeline is empty.") }
    let outcome = try await moment.like(from: "0")
    await until { model.momentsDetails?.moments.first?.isLiked == true && model.pendingMomentIDs.isEmpty }
    running.cancel()
    report("Moments", outcome, expected: .confirmed)
  }

  static func signIn() async {
    let account = InMemorySignInSession.Account(uid: "007", username: "jake", password: Password("low-level"))
    let service = UserService(session: InMemorySignInSession(accounts: [account]))
    let model = SignInViewModel(userService: service)
    let running = Task { [weak model] in await model?.run() }
    model.username = account.username
    model.password = account.password
    await model.submit()
    await until { model.submitTitle == "SignOut" }
    running.cancel()
    report("SignIn", "\(service.signState)", expected: "signed(jake)")
  }

  static func addTodo() async {
    let model = TodoListViewModel(todoList: TodoList(store: InMemoryStore()))
    let running = Task { [weak model] in await model?.run() }
    await until { model.isLoaded }
    let detail = model.openAdd()
    detail?.name = "Buy milk"
    detail?.done()
    await until { model.detail == nil && !model.items.isEmpty }
    running.cancel()
    report("Todo", model.items.map(\.name), expected: ["Buy milk"])
  }
}
