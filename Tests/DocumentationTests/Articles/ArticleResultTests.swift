import DataStore
import Foundation
import Multicast
import SignIn
import Testing
import Todo

/// Checks that the examples of the articles print what their comments state.
@Suite(.timeLimit(.minutes(15))) struct ArticleResultTests {
  @Test func `In Multicast, both subscribers get the replayed and the next element`() async {
    #expect(
      await output(of: MulticastExamples.firstExample) == ["badge: Ann", "badge: Ben", "list: Ann", "list: Ben"])
  }

  @Test func `Each example of choosing a channel has the result that its comment states`() async {
    // This example prints nothing, so it only has to run.
    ChoosingAChannelExamples.events()
    #expect(await output(of: ChoosingAChannelExamples.state) == ["loaded"])
    #expect(await output(of: ChoosingAChannelExamples.stateWithoutFirstValue) == ["[]", "[\"message-1\"]"])
    #expect(await output(of: ChoosingAChannelExamples.update) == ["1"])
    let votes = ChoosingAChannelExamples.Votes()
    await votes.vote()
    var counts = votes.stream.makeAsyncIterator()
    #expect(await counts.next() == 1)
  }

  @Test func `In Guarantees, there is no gap between the replay and the next element`() async {
    #expect(await output(of: GuaranteesExamples.subscription) == ["1", "2"])
  }

  @Test func `In Guarantees, a late subscriber gets the last value`() async {
    #expect(await output(of: GuaranteesExamples.lateSubscriber) == ["loaded"])
  }

  @Test func `In Buffering, a subscriber has a policy of its own`() async {
    #expect(
      await output(of: BufferingExamples.ownPolicy) == ["display: 22", "record: 20", "record: 21", "record: 22"])
  }

  @Test func `Each buffering policy keeps the elements that its comment states`() async {
    #expect(
      await output(of: BufferingExamples.policies)
        == ["[1, 2, 3, 4, 5]", "[5]", "[3, 4, 5]", "[1, 2, 3]", "[1, 2, 5]"])
  }

  @Test func `In Buffering, an overflow ends a subscription with an error after the buffered elements`() async {
    // The three elements, the capacity in the error, and the dropped count.
    #expect(await output(of: BufferingExamples.failureOnOverflow) == ["1", "2", "3", "3", "1"])
  }

  @Test func `In Buffering, the dropped count includes the elements that a cancellation drops`() async {
    // The second number is an element, and the others are dropped counts.
    #expect(await output(of: BufferingExamples.droppedCount) == ["2", "3", "2", "3", "6"])
  }

  @Test func `In Buffering, the capacity is at least the size of the replay`() async {
    #expect(await output(of: BufferingExamples.capacityAndReplay) == ["4", "5", "6"])
  }

  /// Checks the columns of the table in `Buffering.md` that follow from running each policy.
  @Test(arguments: [
    ("unbounded", BufferingPolicy<any Error>.unbounded, [1, 2, 3, 4, 5]), ("latest", .latest, [5]),
    ("dropOldest", .dropOldest(3), [3, 4, 5]), ("dropNewest", .dropNewest(3), [1, 2, 3]),
    ("replaceNewest", .replaceNewest(3), [1, 2, 5]), ("error", .error(3), [1, 2, 3]),
  ])
  func `In Buffering, the table has the elements and the dropped count of each policy`(
    name: String, policy: BufferingPolicy<any Error>, elements: [Int]
  ) async throws {
    let channel = MulticastChannel<Int, any Error>(buffering: policy)
    let subscription = channel.stream.subscribe()
    for element in 1...5 { channel.send(element) }
    channel.finish()
    var received: [Int] = []
    var errorSuffix = ""
    do {
      for try await element in subscription { received.append(element) }
    } catch {
      errorSuffix = ", then the error"
    }
    #expect(received == elements)
    let article = try MarkdownFile("Sources/Multicast/Multicast.docc/Buffering.md")
    let row = try #require(article.lines.first { $0.hasPrefix("| ``BufferingPolicy/\(name)") })
    let columns = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
    try #require(columns.count > 2)
    #expect(columns[1] == received.map(String.init).joined(separator: ", ") + errorSuffix)
    #expect(columns[2] == "\(subscription.droppedCount)")
  }

  @Test func `In Coming from RxSwift, channels deliver the elements that the three subjects deliver`() async {
    #expect(
      await output(of: ComingFromExamples.publishSubject) == ["observer1: 2", "observer1: 3", "observer2: 3"])
    #expect(
      await output(of: ComingFromExamples.behaviorSubject)
        == ["observer1: 1", "observer1: 2", "observer1: 3", "observer2: 2", "observer2: 3"])
    #expect(
      await output(of: ComingFromExamples.replaySubject)
        == [
          "observer1: 1", "observer1: 2", "observer1: 3", "observer1: 4", "observer2: 2", "observer2: 3",
          "observer2: 4",
        ])
  }

  @Test @MainActor func `In Coming from RxSwift, the task takes the place of the dispose bag`() async {
    let channel = MulticastChannel<String, Never>(buffering: .unbounded)
    var screen: ComingFromExamples.InboxScreen? = .init()
    screen?.start(reading: channel.stream)
    #expect(channel.subscriberCount == 1)
    let reading = screen?.reading
    screen = nil
    await reading?.value
    #expect(channel.subscriberCount == 0)
  }

  @Test @MainActor func `In Coming from RxSwift, the screen shows what was sent`() async {
    let channel = MulticastChannel<String, Never>(buffering: .unbounded)
    let screen = ComingFromExamples.InboxScreen()
    screen.start(reading: channel.stream)
    channel.send("Ann's message")
    channel.finish()
    await screen.reading?.value
    #expect(screen.titles == ["Ann's message"])
  }

  @Test func `In Coming from Combine, a subscriber gets the current value, then each update`() async {
    #expect(await output(of: ComingFromExamples.combine) == ["value: 0", "value: 1"])
  }

  @Test func `In Coming from Kotlin, a new subscriber gets the current value`() async {
    #expect(await output(of: ComingFromExamples.kotlin) == ["value: 1"])
  }

  @Test func `In How the log works, all elements but the last three count as dropped`() async {
    #expect(await output(of: HowTheLogWorksExamples.window) == ["997"])
  }

  @Test func `In First ten minutes, a todo is added once, and a sign-in reports its states`() async throws {
    let store = InMemoryStore()
    let list = TodoList(store: store)
    #expect(
      try await output { print in try await FirstTenMinutesExamples.addTodo(to: list, print: print) }
        == ["Finish adding a new todo."])
    #expect(try await list.fetchItems().elements.map(\.name) == ["Buy milk"])

    let account = InMemorySignInSession.Account(uid: "0", username: "jakelin", password: Password("secret"))
    let service = UserService(session: InMemorySignInSession(accounts: [account]))
    #expect(
      await output { print in await FirstTenMinutesExamples.signIn(service, print: print) }
        == ["Hello jakelin", "unsigned", "signingIn", "signed(jakelin)"])
  }

  @Test func `In First ten minutes, a custom repository shows and stores the fetched value`() async throws {
    struct Client: FirstTenMinutesExamples.ProfileClient {
      func profile(of userID: String) async throws(FirstTenMinutesExamples.ClientError)
        -> FirstTenMinutesExamples.Profile
      {
        .init(name: "Jake")
      }
    }
    let store = InMemoryStore()
    #expect(
      try await output { print in
        try await FirstTenMinutesExamples.showProfile(from: Client(), storedIn: store, print: print)
      }
        == ["Jake"])
    let stored = try await store.load(StoreKey<FirstTenMinutesExamples.Profile>("profile", id: "0"))
    #expect(stored?.value.name == "Jake")
  }

  @Test func `In DataStore, an observer first receives the saved value, and a count is incremented`() async throws {
    #expect(try await output(of: DataStoreExamples.keepAName) == ["Jake"])
    let store = InMemoryStore()
    for _ in 1...2 { try await DataStoreExamples.incrementCount(in: store) }
    #expect(try await store.load(StoreKey<Int>("count"))?.value == 2)
  }
}
