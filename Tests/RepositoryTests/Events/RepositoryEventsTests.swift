import Multicast
import Repository
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct RepositoryEventsTests {
  @Test func `A subscriber receives the last events before its subscription, then every later one`() async {
    let events = RepositoryEvents(replay: 2)
    for number in 1...3 { events.emit(.requestStarted(key: "\(number)")) }
    let subscription = events.stream.subscribe()
    events.emit(.requestFinished(key: "3"))
    #expect(
      await subscription.first(3) == [.requestStarted(key: "2"), .requestStarted(key: "3"), .requestFinished(key: "3")])
  }

  @Test func `A slow subscriber loses the oldest events, which are counted`() async {
    let events = RepositoryEvents(replay: 0, capacity: 2)
    let subscription = events.stream.subscribe()
    for number in 1...5 { events.emit(.requestStarted(key: "\(number)")) }
    #expect(await subscription.first(2) == [.requestStarted(key: "4"), .requestStarted(key: "5")])
    #expect(subscription.droppedCount == 3)
  }

  @Test func `The stream finishes when its owner is released`() async {
    var events: RepositoryEvents? = RepositoryEvents()
    let subscription = events?.stream.subscribe()
    events?.emit(.replyDiscarded(key: "a"))
    events = nil
    // `first(2)` returns a single event only because the stream finishes.
    #expect(await subscription?.first(2) == [.replyDiscarded(key: "a")])
  }

  @Test(arguments: [
    (RepositoryEvent.requestJoined(key: "0", callers: 2), "request 0 joined, 2 callers"),
    (
      .retryScheduled(MutationID(rawValue: "k"), attempt: 2, delay: .seconds(3), reason: "away"),
      "mutation k failed at attempt 2, next attempt in 3.0 seconds: away"
    ),
    (.mutationRefused(MutationID(rawValue: "k"), .byServer(reason: "too late")), "mutation k refused: too late"),
    (
      .mutationRefused(MutationID(rawValue: "k"), .attemptsUsedUp(reason: "away")),
      "mutation k given up after the last attempt: away"
    ),
    (
      .mutationConflicted(MutationID(rawValue: "k"), MutationConflict("There is no item a.")),
      "mutation k is in conflict: There is no item a."
    ),
    (.valueEvicted(key: "0"), "the value of 0 evicted"),
    (.queueLength(waiting: 3, dead: 1), "3 mutations in the queue, 1 dead letter"),
  ])
  func `The description of an event is one line`(event: RepositoryEvent, line: String) {
    #expect("\(event)" == line)
  }
}
