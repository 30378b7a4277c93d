import Multicast
import Repository
import Testing

@Suite(.timeLimit(.minutes(15))) struct RepositoryEventsTests {
  @Test func `A listener gets the newest events first, then every later one`() async {
    let events = RepositoryEvents(replay: 2)
    for number in 1...3 { events.emit(.requestStarted(key: "\(number)")) }
    let listener = events.stream.subscribe()
    events.emit(.requestFinished(key: "3"))
    #expect(
      await listener.first(3) == [.requestStarted(key: "2"), .requestStarted(key: "3"), .requestFinished(key: "3")])
  }

  @Test func `A listener that lags loses the oldest, and they are counted`() async {
    let events = RepositoryEvents(replay: 0, capacity: 2)
    let listener = events.stream.subscribe()
    for number in 1...5 { events.emit(.requestStarted(key: "\(number)")) }
    #expect(await listener.first(2) == [.requestStarted(key: "4"), .requestStarted(key: "5")])
    #expect(listener.droppedCount == 3)
  }

  @Test func `The stream ends with its owner`() async {
    var events: RepositoryEvents? = RepositoryEvents()
    let listener = events?.stream.subscribe()
    events?.emit(.replyDiscarded(key: "a"))
    events = nil
    #expect(await listener?.first(2) == [.replyDiscarded(key: "a")])
  }

  @Test(arguments: [
    (RepositoryEvent.requestJoined(key: "0", callers: 2), "request 0 joined, 2 callers"),
    (
      .retryScheduled(MutationID(rawValue: "k"), attempt: 2, delay: .seconds(3), reason: "away"),
      "mutation k failed at attempt 2, next one in 3.0 seconds: away"
    ),
    (.mutationRefused(MutationID(rawValue: "k"), .byServer(reason: "too late")), "mutation k refused: too late"),
    (
      .mutationRefused(MutationID(rawValue: "k"), .attemptsUsedUp(reason: "away")),
      "mutation k given up after the last attempt: away"
    ),
    (
      .mutationConflicted(MutationID(rawValue: "k"), MutationConflict("There is no a.")),
      "mutation k is in conflict: There is no a."
    ),
    (.valueEvicted(key: "0"), "the value of 0 evicted"),
    (.queueLength(waiting: 3, dead: 1), "3 mutations in the queue, 1 dead letters"),
  ])
  func `An event is one line for a log`(event: RepositoryEvent, line: String) {
    #expect("\(event)" == line)
  }
}
