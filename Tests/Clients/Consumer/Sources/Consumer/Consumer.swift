import DataStore
import Foundation
import GraphQLClient
import Moments
import Multicast
import Repository
import SignIn
import Todo

/// A client that uses the package as an app would: from a package of its own, and only through the public API.
@main
struct Consumer {
  struct Backend: GetMomentsByUserIDSessionType, UpdateMomentLikeSessionType {
    func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
      timeline(isLiked: false)
    }

    func updateLike(
      _ isLiked: Bool, momentID: String, fromUserID userID: String
    ) async throws(APISessionError) -> MomentsDetails {
      timeline(isLiked: isLiked)
    }

    private func timeline(isLiked: Bool) -> MomentsDetails {
      MomentsDetails(
        userDetails: .init(id: "0", name: "Jake Lin", avatar: "", backgroundImage: ""),
        moments: [
          .init(
            id: "0", userDetails: .init(name: "Taylor Swift", avatar: ""), type: .photos, title: "the pic is awesome",
            photos: [], createdDate: "1605521360", isLiked: isLiked, likes: [])
        ])
    }
  }

  /// A custom transport that replies to each request with the size of the request's body.
  struct BodySizeTransport: HTTPTransport {
    func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
      HTTPResponse(
        status: 200, headers: ["Content-Type": "application/graphql-response+json"],
        body: HTTPBody(Data(#"{"data":{"size":\#(request.body.count)}}"#.utf8)))
    }
  }

  static func main() async throws {
    await broadcast()
    try await postQuery()
    try await observeTimeline()
    try await greet()
    try await addTodo()
    try await signIn()
  }

  private static func broadcast() async {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    let numbers = channel.stream
    let sumTask = Task {
      var sum = 0
      for await number in numbers { sum += number }
      return sum
    }
    while channel.subscriberCount == 0 { await Task.yield() }
    for number in 1...100 { channel.send(number) }
    channel.finish()
    print("The sum of the received numbers is \(await sumTask.value).")
  }

  private static func postQuery() async throws {
    guard let url = URL(string: "https://example.com/graphql") else { return }
    let session = APISession(url: url, transport: BodySizeTransport())
    let reply: [String: Int] = try await session.post(
      document: "{ size }", operationName: "", variables: [String: String]())
    print("The request body had \(reply["size"] ?? 0) bytes.")
  }

  private static func observeTimeline() async throws {
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()), getMomentsByUserIDSession: Backend(),
      updateMomentLikeSession: Backend())
    try await repo.getMoments(userID: "0")
    for await timeline in repo.momentsDetails(userID: "0") {
      let moment = timeline.moments[0]
      print("\(moment.isLiked == true ? "♥" : "·") \(moment.userDetails.name): \(moment.title ?? "")")
      if moment.isLiked == true { break }
      try await repo.updateLike(isLiked: true, momentID: moment.id, fromUserID: "0")
    }
  }

  private static func greet() async throws {
    let greetings = SyncedRepository("greetings", store: InMemoryStore()) {
      (name: String) async throws(APISessionError) in "Hello, \(name)."
    }
    try await greetings.refresh("Jake")
    for await greeting in greetings.values(of: "Jake") {
      print(greeting)
      break
    }
  }

  private static func addTodo() async throws {
    let list = TodoList(store: InMemoryStore())
    let detail = await TodoDetailViewModel()
    let itemsToAdd = await detail.todo.subscribe()
    await MainActor.run {
      detail.name = "Buy milk"
      detail.done()
    }
    // The loop ends after one item, because `done()` has finished the stream.
    for await item in itemsToAdd { try await list.add(item) }
    print("\(try await list.fetchItems().title): \(try await list.fetchItems().elements.map(\.name))")
  }

  private static func signIn() async throws {
    let password = Password("low-level")
    let service = UserService(
      session: InMemorySignInSession(accounts: [.init(uid: "007", username: "jake", password: password)]))
    let states = service.signStates.subscribe()
    try await service.performSignin(username: "jake", password: password)
    for await state in states {
      // Every password is printed as `<redacted>`.
      print("\(state), with the password \(password)")
      if case .signed = state { break }
    }
  }
}
