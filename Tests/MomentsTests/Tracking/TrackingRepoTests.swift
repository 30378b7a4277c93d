import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Testing

@Suite(.timeLimit(.minutes(15))) struct TrackingRepoTests {
  private func event(_ number: Int) -> TrackingEvent { .action(name: "tap", itemID: "\(number)") }

  /// Returns an event with a number of its own for each task and each index below 1,000.
  private func event(_ index: Int, ofTask task: Int) -> TrackingEvent { event(task * 1_000 + index) }

  @Test func `Every provider receives every event once, in the order of the calls`() {
    let repo = TrackingRepo()
    let providers = (0..<3).map { _ in TrackingRecorder() }
    for provider in providers { repo.register(provider) }
    repo.trackScreenviews(name: "moments-screen", of: self)
    repo.trackAction(name: "tap", itemID: "7")
    repo.trackEvent(name: "shaken", parameters: ["strength": "2"])
    repo.track(event(4))
    for provider in providers {
      #expect(
        provider.events == [
          .screenview(name: "moments-screen", screenClass: "TrackingRepoTests"),
          .action(name: "tap", itemID: "7"),
          .event(name: "shaken", parameters: ["strength": "2"]),
          .action(name: "tap", itemID: "4"),
        ])
    }
  }

  @Test func `A provider that is registered twice receives each event once`() {
    let repo = TrackingRepo()
    let provider = TrackingRecorder()
    repo.register(provider)
    repo.register(provider)
    repo.track(event(1))
    #expect(provider.events == [event(1)])
  }

  @Test func `A provider receives only events that are tracked after its registration`() {
    let repo = TrackingRepo()
    let earlyProvider = TrackingRecorder()
    let lateProvider = TrackingRecorder()
    repo.track(event(0))
    repo.register(earlyProvider)
    repo.track(event(1))
    repo.register(lateProvider)
    repo.track(event(2))
    #expect(earlyProvider.events == [event(1), event(2)])
    #expect(lateProvider.events == [event(2)])
  }

  @Test func `If a provider tracks an event while it receives one, all providers receive the new event after that one`()
  {
    let repo = TrackingRepo()
    let lateProvider = TrackingRecorder()
    let firstProvider = TrackingRecorder { [unowned repo] event in
      guard event == self.event(1) else { return }
      repo.track(self.event(2))
      repo.register(lateProvider)
      repo.track(self.event(3))
    }
    let secondProvider = TrackingRecorder()
    repo.register(firstProvider)
    repo.register(secondProvider)
    repo.track(event(1))
    #expect(firstProvider.events == [event(1), event(2), event(3)])
    #expect(secondProvider.events == firstProvider.events)
    // This provider was registered after event 2 was tracked, although before that event was delivered.
    #expect(lateProvider.events == [event(3)])
  }

  @Test func `Every provider receives each event of several tasks once, in one order that keeps each task's order`()
    async
  {
    let repo = TrackingRepo()
    let providers = [TrackingRecorder(), TrackingRecorder()]
    for provider in providers { repo.register(provider) }
    let taskCount = 4
    let eventsPerTask = 250
    await withTaskGroup { group in
      for task in 0..<taskCount {
        group.addTask { for index in 0..<eventsPerTask { repo.track(event(index, ofTask: task)) } }
      }
    }
    // Every event is delivered by a call of `track`, and all calls have returned.
    #expect(providers[0].events == providers[1].events)
    for task in 0..<taskCount {
      let eventsOfTask = (0..<eventsPerTask).map { event($0, ofTask: task) }
      let eventSet = Set(eventsOfTask)
      #expect(providers[0].events.filter(eventSet.contains) == eventsOfTask)
    }
    #expect(providers[0].events.count == taskCount * eventsPerTask)
  }

  // MARK: - Screen classes

  private final class Screen: CustomStringConvertible {
    var description: String { "an instance" }
  }

  private struct Box<Content> {
    enum Inner { case one }
  }

  @Test func `The screen class is the name of the type, not a dump of the instance`() {
    let repo = TrackingRepo()
    let provider = TrackingRecorder()
    repo.register(provider)
    let screens: [Any] = [Screen(), Screen.self, Box<Screen>(), Box<[Int]>.Inner.one, 1 as any Equatable]
    for screen in screens { repo.trackScreenviews(name: "s", of: screen) }
    #expect(
      provider.events
        == ["Screen", "Screen", "Box<Screen>", "Inner", "Int"].map { .screenview(name: "s", screenClass: $0) })
  }

  // MARK: - Likes

  @Test func `Likes and unlikes are actions whose item id contains the ids of the moment and the user`() {
    #expect(
      TrackingEvent.momentLike(momentID: "0", userID: "1")
        == .action(name: "moment-like", itemID: "moment-id-0-user-id-1"))
    #expect(
      TrackingEvent.momentUnlike(momentID: "0", userID: "1")
        == .action(name: "moment-unlike", itemID: "moment-id-0-user-id-1"))
  }

  @Test func `A row tracks each tap once, before it calls the repository`() async throws {
    let log = Lock<[String]>([])
    let repo = RelayRepo(onLike: { isLiked in log.withLock { $0.append(isLiked ? "like" : "unlike") } })
    let tracking = TrackingRepo()
    let provider = TrackingRecorder { _ in log.withLock { $0.append("event") } }
    tracking.register(provider)
    let row = MomentListItemViewModel(moment: .fixture(), momentsRepo: repo, trackingRepo: tracking)
    try await row.like(from: "1")
    try await row.unlike(from: "1")
    #expect(
      provider.events == [
        .action(name: "moment-like", itemID: "moment-id-0-user-id-1"),
        .action(name: "moment-unlike", itemID: "moment-id-0-user-id-1"),
      ])
    #expect(log.withLock { $0 } == ["event", "like", "event", "unlike"])
  }

  @Test func `A tap is tracked once, even if the server refuses the like`() async {
    let harness = RepoHarness(updateLike: { _ throws(APISessionError) in throw .statusCode(403, bodyExcerpt: "no") })
    let tracking = TrackingRepo()
    let provider = TrackingRecorder()
    tracking.register(provider)
    let row = MomentListItemViewModel(moment: .fixture(), momentsRepo: harness.repo, trackingRepo: tracking)
    await #expect(throws: MomentsRepoError.session(.statusCode(403, bodyExcerpt: "no"))) {
      try await row.like(from: "1")
    }
    #expect(provider.events == [.momentLike(momentID: "0", userID: "1")])
  }

  @MainActor
  @Test func `A timeline model tracks the screen under its type's name, and its rows use the same tracking repository`()
    async throws
  {
    let harness = RepoHarness()
    try await harness.repo.getMoments(userID: "0")
    let tracking = TrackingRepo()
    let provider = TrackingRecorder()
    tracking.register(provider)
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: harness.repo, trackingRepo: tracking)
    model.trackScreenviews()
    let runTask = Task { await model.run() }
    await until { model.hasContent }
    // The profile is the first row.
    guard case .moment(let row) = model.listItems[1] else {
      Issue.record("Unexpected rows \(model.listItems)")
      return
    }
    try await row.like(from: "0")
    runTask.cancel()
    await runTask.value
    #expect(
      provider.events == [
        .screenview(name: "moments-screen", screenClass: "MomentsTimelineViewModel"),
        .momentLike(momentID: "0", userID: "0"),
      ])
  }
}
