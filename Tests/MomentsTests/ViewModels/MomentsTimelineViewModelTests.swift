import Foundation
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Observation
import Repository
import Testing

@MainActor
@Suite(.timeLimit(.minutes(15))) struct MomentsTimelineViewModelTests {
  private func makeModel(_ harness: RepoHarness, userID: String = "0") -> MomentsTimelineViewModel {
    // The current time is one minute after the fixture's moment was created.
    MomentsTimelineViewModel(
      userID: userID, momentsRepo: harness.repo, now: { Date(timeIntervalSince1970: 1_605_521_420) },
      locale: Locale(identifier: "en_US"))
  }

  @Test func `The list is empty at first, then has the profile and the moments in the server's order`() async throws {
    let harness = RepoHarness(getMoments: { _ in .fixture(momentIDs: ["2", "0", "1"]) })
    let model = makeModel(harness)
    #expect(model.listItems == [])
    #expect(!model.hasContent)
    let runTask = Task { await model.run() }
    await model.loadItems()
    await until { model.hasContent }
    #expect(model.listItems.map(\.id) == ["profile", "moment-2", "moment-0", "moment-1"])
    guard case .profile(let profile) = model.listItems[0], case .moment(let moment) = model.listItems[1] else {
      Issue.record("Unexpected rows \(model.listItems)")
      return
    }
    #expect(profile.name == "Jake Lin")
    #expect(moment.postDateDescription == "1 minute ago")
    runTask.cancel()
    await runTask.value
  }

  @Test func `loadItems requests the timeline once, with the user's id`() async {
    let harness = RepoHarness()
    await makeModel(harness, userID: "7").loadItems()
    #expect(harness.getMoments.requestedUserIDs == ["7"])
  }

  @Test func `Loading lasts as long as the call and ends on success`() async {
    let gate = Gate()
    let harness = RepoHarness(getMoments: { _ in
      await gate.pass()
      return .fixture()
    })
    let model = makeModel(harness)
    #expect(!model.isLoading)
    let load = Task { await model.loadItems() }
    await gate.arrivals()
    #expect(model.isLoading)
    gate.open()
    await load.value
    #expect(!model.isLoading)
    #expect(!model.hasError)
  }

  @Test func `Loading ends on failure, and the error is shown until a retry begins`() async {
    let gate = Gate()
    let fetchesFail = Lock(true)
    let harness = RepoHarness(getMoments: { _ throws(APISessionError) in
      if fetchesFail.withLock({ $0 }) { throw .timedOut }
      await gate.pass()
      return .fixture()
    })
    let model = makeModel(harness)
    await model.loadItems()
    #expect(!model.isLoading)
    #expect(model.hasError)
    #expect(model.error == .session(.timedOut))
    fetchesFail.withLock { $0 = false }
    let retry = Task { await model.loadItems() }
    await gate.arrivals()
    #expect(!model.hasError)
    #expect(model.isLoading)
    gate.open()
    await retry.value
    #expect(!model.hasError)
  }

  @Test func `Loading ends on cancellation, which isn't an error`() async {
    let gate = Gate()
    let harness = RepoHarness(getMoments: { _ throws(APISessionError) in
      await gate.pass()
      throw .cancelled
    })
    let model = makeModel(harness)
    let load = Task { await model.loadItems() }
    await gate.arrivals()
    load.cancel()
    await load.value
    #expect(!model.isLoading)
    #expect(!model.hasError)
  }

  @Test func `Loading ends only after both of two concurrent loads have ended`() async {
    let gate = Gate()
    let harness = RepoHarness(getMoments: { _ in
      await gate.pass()
      return .fixture()
    })
    let model = makeModel(harness)
    let firstLoad = Task { await model.loadItems() }
    await gate.arrivals()
    let secondLoad = Task { await model.loadItems() }
    for await event in harness.repo.events where event == .requestJoined(key: "0", callers: 2) { break }
    firstLoad.cancel()
    await firstLoad.value
    #expect(model.isLoading)
    gate.open()
    await secondLoad.value
    #expect(!model.isLoading)
    #expect(harness.getMoments.requestedUserIDs == ["0"])
  }

  @Test func `A failed load keeps the content`() async throws {
    let harness = RepoHarness(getMoments: { _ throws(APISessionError) in throw .timedOut })
    try await harness.store.save(momentsDetails: .fixture(), userID: "0")
    let model = makeModel(harness)
    let runTask = Task { await model.run() }
    await until { model.hasContent }
    await model.loadItems()
    #expect(model.hasError)
    #expect(model.hasContent)
    #expect(model.listItems.count == 2)
    runTask.cancel()
    await runTask.value
  }

  @Test func `hasContent notifies observers once, when content arrives`() async throws {
    let harness = RepoHarness()
    let model = makeModel(harness)
    let changeCount = Lock(0)
    withObservationTracking {
      _ = model.hasContent
    } onChange: {
      changeCount.withLock { $0 += 1 }
    }
    let runTask = Task { await model.run() }
    try await harness.repo.getMoments(userID: "0")
    await until { model.hasContent }
    #expect(changeCount.withLock { $0 } == 1)
    withObservationTracking {
      _ = model.hasContent
    } onChange: {
      changeCount.withLock { $0 += 1 }
    }
    try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0")
    await until {
      if case .moment(let moment) = model.listItems[1] { moment.isLiked } else { false }
    }
    #expect(changeCount.withLock { $0 } == 1)
    runTask.cancel()
    await runTask.value
  }

  @Test func `Rows use the injected repository, and a like shows in the list`() async throws {
    let harness = RepoHarness()
    try await harness.repo.getMoments(userID: "0")
    let model = makeModel(harness)
    let runTask = Task { await model.run() }
    await until { model.hasContent }
    guard case .moment(let moment) = model.listItems[1] else {
      Issue.record("Unexpected rows \(model.listItems)")
      return
    }
    #expect(!moment.isLiked)
    try await moment.like(from: "0")
    await until {
      if case .moment(let moment) = model.listItems[1] { moment.isLiked } else { false }
    }
    try await moment.unlike(from: "0")
    await until {
      if case .moment(let moment) = model.listItems[1] { !moment.isLiked } else { false }
    }
    #expect(
      harness.updateLike.requests == [
        .init(isLiked: true, momentID: "0", userID: "0"), .init(isLiked: false, momentID: "0", userID: "0"),
      ])
    runTask.cancel()
    await runTask.value
  }

  @Test func `Another user's timeline is not shown`() async throws {
    let harness = RepoHarness()
    let model = makeModel(harness)
    let runTask = Task { await model.run() }
    try await harness.repo.getMoments(userID: "1")
    try await harness.repo.getMoments(userID: "0")
    await until { model.hasContent }
    guard case .moment = model.listItems[1], case .profile(let profile) = model.listItems[0] else {
      Issue.record("Unexpected rows \(model.listItems)")
      return
    }
    #expect(profile.avatarURL == URL(string: "https://example.com/avatars/0.png"))
    runTask.cancel()
    await runTask.value
  }
}
