import DataStore
import Foundation
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Observation
import Repository
import TestSupport
import Testing

/// The lifetime of a timeline model's run, and what its screen shows during the run: loads, content and pages.
@MainActor
@Suite(.timeLimit(.minutes(15))) struct MomentsTimelineViewModelRunTests {
  private func rows(_ model: MomentsTimelineViewModel) -> [MomentListItemViewModel] {
    model.listItems.compactMap { if case .moment(let row) = $0 { row } else { nil } }
  }

  // MARK: - Lifetime

  @Test func `A run doesn't keep its model alive, and ends when the model is released`() async throws {
    let harness = RepoHarness()
    try await harness.repo.getMoments(userID: "0")
    var model: MomentsTimelineViewModel? = MomentsTimelineViewModel(userID: "0", momentsRepo: harness.repo)
    weak let weakModel = model
    let runTask = Task { [weak model] in await model?.run() }
    await until { weakModel?.hasContent == true && weakModel?.savedAt != nil }
    model = nil
    try #require(weakModel == nil)
    await runTask.value
    // The repository is still usable.
    #expect(await harness.repo.momentsDetails(userID: "0").first(1) == [.fixture()])
  }

  @Test func `A run doesn't keep the repository alive after the model is released`() async throws {
    var harness: RepoHarness? = RepoHarness()
    try await #require(harness).repo.getMoments(userID: "0")
    var model: MomentsTimelineViewModel? = MomentsTimelineViewModel(
      userID: "0", momentsRepo: try #require(harness).repo)
    weak let weakRepo = harness?.repo
    let runTask = Task { [weak model] in await model?.run() }
    // If the model has already been released, this doesn't wait, and the test fails below.
    await until { [weak model] in model?.hasContent != false }
    harness = nil
    // The model keeps the repository alive, because the screen may still load items.
    #expect(weakRepo != nil)
    model = nil
    try #require(weakRepo == nil)
    await runTask.value
  }

  @Test func `Cancelling the task ends the run, and the model can run again`() async throws {
    let harness = RepoHarness()
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: harness.repo)
    let firstRun = Task { await model.run() }
    firstRun.cancel()
    await firstRun.value
    try await harness.repo.getMoments(userID: "0")
    #expect(model.listItems == [])
    let secondRun = Task { await model.run() }
    await until { model.hasContent }
    secondRun.cancel()
    await secondRun.value
  }

  // MARK: - Loads by other screens

  @Test func `A load by another screen is shown, and so is its failure until a retry begins`() async throws {
    let fetchesFail = Lock(true)
    let failureGate = Gate()
    let successGate = Gate()
    let harness = RepoHarness(getMoments: { _ throws(APISessionError) in
      let fails = fetchesFail.withLock { $0 }
      await (fails ? failureGate : successGate).pass()
      if fails { throw .timedOut }
      return .fixture()
    })
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: harness.repo)
    let runTask = Task { await model.run() }
    let load = Task { try await harness.repo.getMoments(userID: "0") }
    await until { model.isLoading }
    #expect(!model.hasError)
    failureGate.open()
    await until { model.hasError }
    #expect(model.error == .session(.timedOut))
    #expect(!model.isLoading)
    await #expect(throws: MomentsRepoError.session(.timedOut)) { try await load.value }

    fetchesFail.withLock { $0 = false }
    let retry = Task { try await harness.repo.getMoments(userID: "0") }
    await until { model.isLoading }
    #expect(!model.hasError)
    successGate.open()
    try await retry.value
    await until { !model.isLoading }
    #expect(!model.hasError)
    await until { model.hasContent }
    runTask.cancel()
    await runTask.value
  }

  @Test func `Loading has ended when loadItems returns, even while the model runs`() async throws {
    let fetchesFail = Lock(false)
    let harness = RepoHarness(getMoments: { _ throws(APISessionError) in
      if fetchesFail.withLock({ $0 }) { throw .timedOut }
      return .fixture()
    })
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: harness.repo)
    let runTask = Task { await model.run() }
    for round in 0..<50 {
      fetchesFail.withLock { $0 = round.isMultiple(of: 2) }
      await model.loadItems()
      #expect(!model.isLoading)
      #expect(model.hasError == round.isMultiple(of: 2))
    }
    runTask.cancel()
    await runTask.value
  }

  @Test func `A screen that stops during a load shows the current state when it runs again`() async throws {
    let gate = Gate()
    let harness = RepoHarness(getMoments: { _ in
      await gate.pass()
      return .fixture()
    })
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: harness.repo)
    let firstRun = Task { await model.run() }
    let otherScreenLoad = Task { try await harness.repo.getMoments(userID: "0") }
    // The load state comes from the repository, because this screen hasn't begun a load yet.
    await until { model.isLoading }
    let load = Task { await model.loadItems() }
    for await event in harness.repo.events where event == .requestJoined(key: "0", callers: 2) { break }
    firstRun.cancel()
    load.cancel()
    await load.value
    await firstRun.value
    #expect(!model.isLoading)

    let secondRun = Task { await model.run() }
    await until { model.isLoading }
    gate.open()
    try await otherScreenLoad.value
    await until { !model.isLoading && model.hasContent }
    secondRun.cancel()
    await secondRun.value
  }

  @Test func `A model that isn't running reports only its own loads`() async throws {
    let delaysReloads = Lock(false)
    let reloadGate = Gate()
    let nextPageGate = Gate()
    let server = PagedTimeline(
      (0...4).map { "\($0)" },
      onRequest: { request throws(APISessionError) in
        if request.after != nil {
          await nextPageGate.pass()
        } else if delaysReloads.withLock({ $0 }) {
          await reloadGate.pass()
        }
      })
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()), getMomentsByUserIDSession: server,
      updateMomentLikeSession: server, pageSize: 2)
    try await repo.reloadMoments(userID: "0")
    let otherScreenLoad = Task { try await repo.loadMoreMoments(userID: "0") }
    await nextPageGate.arrivals()
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: repo)
    delaysReloads.withLock { $0 = true }
    let ownLoad = Task { await model.reloadItems() }
    await reloadGate.arrivals()
    #expect(model.isLoading)
    reloadGate.open()
    await ownLoad.value
    // The load by the other screen is still in flight.
    #expect(!model.isLoading)
    #expect(rows(model).map(\.id) == ["0", "1"])
    nextPageGate.open()
    try await otherScreenLoad.value
  }

  // MARK: - Content

  @Test func `A removed timeline disappears, and a new one appears`() async throws {
    let harness = RepoHarness()
    try await harness.repo.getMoments(userID: "0")
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: harness.repo)
    let runTask = Task { await model.run() }
    await until { model.hasContent && model.savedAt != nil }
    try await harness.store.removeMomentsDetails(userID: "0")
    await until { !model.hasContent }
    #expect(model.listItems == [])
    #expect(model.savedAt == nil)
    #expect(model.age == nil)
    try await harness.repo.getMoments(userID: "0")
    await until { model.hasContent }
    #expect(model.listItems.count == 2)
    runTask.cancel()
    await runTask.value
  }

  @Test func `A screen is empty only once the store was read and has no timeline`() async {
    let repo = RelayRepo()
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: repo)
    #expect(!model.isEmpty)
    let unreadableStore = MomentsRepoError.store(.readFailed(SystemError(code: 5, operation: "testing", path: "")))
    let states: [(MomentsLoadState, isEmpty: Bool)] = [
      (.idle, true), (.loaded(LoadedValue(.fixture(), savedAt: Date(timeIntervalSince1970: 0))), false),
      (.loading(previous: nil), true), (.failed(unreadableStore, previous: nil), false),
      (.failed(.session(.timedOut), previous: nil), true), (.failed(.signedOut, previous: nil), false),
    ]
    for (state, isEmpty) in states {
      repo.loadStates.send(state)
      // Shows the state.
      await model.loadItems()
      #expect(model.isEmpty == isEmpty)
    }
  }

  @Test func `A timeline that is removed right after it arrives doesn't stay on the screen`() async throws {
    let repo = RelayRepo()
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: repo)
    let runTask = Task { await model.run() }
    repo.loadStates.send(.loading(previous: nil))
    await until { model.isLoading }
    // The test doesn't suspend between these calls. The first state may be handed off to the run, which is waiting. Of
    // the other states, the run receives only the last one, so it skips the state with the timeline.
    repo.loadStates.send(.loading(previous: nil))
    repo.loadStates.send(.loaded(LoadedValue(.fixture(), savedAt: Date(timeIntervalSince1970: 0))))
    repo.loadStates.send(.idle)
    await until { !model.isLoading }
    // Once the model has the error of this state, no earlier state can still arrive.
    repo.loadStates.send(.failed(.session(.timedOut), previous: nil))
    await until { model.hasError }
    #expect(!model.hasContent)
    #expect(model.listItems == [])
    runTask.cancel()
    await runTask.value
  }

  @Test func `The age counts from the time at which the timeline was saved`() async throws {
    let saveTime = Date(timeIntervalSince1970: 1_000)
    let store = PersistentDataStore(InMemoryStore(now: { saveTime }))
    let harness = RepoHarness(store: store)
    try await store.save(momentsDetails: .fixture(), userID: "0")
    let currentTime = Lock(Date(timeIntervalSince1970: 1_060))
    let model = MomentsTimelineViewModel(
      userID: "0", momentsRepo: harness.repo, now: { currentTime.withLock { $0 } })
    #expect(model.age == nil)
    let runTask = Task { await model.run() }
    await until { model.savedAt != nil }
    #expect(model.savedAt == saveTime)
    #expect(model.age == .seconds(60))
    currentTime.withLock { $0 = Date(timeIntervalSince1970: 1_090) }
    #expect(model.age == .seconds(90))
    runTask.cancel()
    await runTask.value
  }

  @Test func `Updating the dates makes them relative to the current time`() async throws {
    let harness = RepoHarness()
    try await harness.store.save(momentsDetails: .fixture(), userID: "0")
    // One minute after the fixture's moment was created.
    let currentTime = Lock(Date(timeIntervalSince1970: 1_605_521_420))
    let model = MomentsTimelineViewModel(
      userID: "0", momentsRepo: harness.repo, now: { currentTime.withLock { $0 } }, locale: Locale(identifier: "en_US"))
    model.updateDates()
    #expect(model.listItems == [])
    let runTask = Task { await model.run() }
    await until { model.hasContent }
    #expect(rows(model).map(\.postDateDescription) == ["1 minute ago"])
    currentTime.withLock { $0 += 60 }
    #expect(rows(model).map(\.postDateDescription) == ["1 minute ago"])
    model.updateDates()
    #expect(rows(model).map(\.postDateDescription) == ["2 minutes ago"])
    runTask.cancel()
    await runTask.value
  }

  @Test func `A liked row is pending until the server confirms the like`() async throws {
    let gate = Gate()
    let harness = RepoHarness(updateLike: { _ in
      await gate.pass()
      return .fixture(momentIDs: ["0", "1"], likedMomentIDs: ["1"])
    })
    try await harness.store.save(momentsDetails: .fixture(momentIDs: ["0", "1"]), userID: "0")
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: harness.repo)
    let runTask = Task { await model.run() }
    await until { model.hasContent }
    #expect(rows(model).map(\.isPending) == [false, false])
    let row = rows(model)[1]
    let like = Task { try await row.like(from: "0") }
    await until { rows(model).map(\.isPending) == [false, true] && rows(model)[1].isLiked }
    #expect(model.pendingMomentIDs == ["1"])
    gate.open()
    #expect(try await like.value == .confirmed)
    await until { rows(model).map(\.isPending) == [false, false] }
    #expect(model.pendingMomentIDs == [])
    // The timeline and the pending likes are observed one by one, so either may arrive first.
    await until { model.momentsDetails == .fixture(momentIDs: ["0", "1"], likedMomentIDs: ["1"]) }
    #expect(rows(model).map(\.isLiked) == [false, true])
    runTask.cancel()
    await runTask.value
  }

  // MARK: - Pages

  @Test func `Each page is shown below the previous ones, and new moments above them`() async throws {
    let server = PagedTimeline((0...4).map { "\($0)" })
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()), getMomentsByUserIDSession: server,
      updateMomentLikeSession: server, pageSize: 2)
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: repo)
    let runTask = Task { await model.run() }
    #expect(!model.hasMoreItems)
    await model.reloadItems()
    await until { rows(model).map(\.id) == ["0", "1"] && model.hasMoreItems }
    await model.loadMoreItems()
    await until { rows(model).map(\.id) == ["0", "1", "2", "3"] }
    #expect(model.hasMoreItems)
    server.insert("new")
    await model.reloadItems()
    await until { rows(model).map(\.id) == ["new", "0", "1", "2", "3"] }
    await model.loadMoreItems()
    await until { rows(model).map(\.id) == ["new", "0", "1", "2", "3", "4"] && !model.hasMoreItems }
    await model.loadMoreItems()
    #expect(server.requests.map(\.after) == [nil, "1", nil, "3"])
    runTask.cancel()
    await runTask.value
  }

  @Test func `A failed load of a page sets the error, and the next call fetches the page again`() async throws {
    let fetchesFail = Lock(false)
    let server = PagedTimeline(
      (0...4).map { "\($0)" },
      onRequest: { _ throws(APISessionError) in if fetchesFail.withLock({ $0 }) { throw .timedOut } })
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()), getMomentsByUserIDSession: server,
      updateMomentLikeSession: server, pageSize: 2)
    let model = MomentsTimelineViewModel(userID: "0", momentsRepo: repo)
    let runTask = Task { await model.run() }
    await model.reloadItems()
    fetchesFail.withLock { $0 = true }
    await model.loadMoreItems()
    #expect(model.error == .session(.timedOut))
    #expect(!model.isLoading)
    fetchesFail.withLock { $0 = false }
    await model.loadMoreItems()
    #expect(!model.hasError)
    await until { rows(model).map(\.id) == ["0", "1", "2", "3"] }
    #expect(server.requests.map(\.after) == [nil, "1", "1"])
    runTask.cancel()
    await runTask.value
  }
}
