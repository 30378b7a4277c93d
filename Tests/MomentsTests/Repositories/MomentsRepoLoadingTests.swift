import DataStore
import Foundation
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct MomentsRepoLoadingTests {
  // MARK: - Sharing

  @Test func `A hundred callers share a request, which continues if all but one are cancelled`() async throws {
    let gate = Gate()
    let harness = RepoHarness(getMoments: { userID in
      await gate.pass()
      return .fixture(userID: userID)
    })
    let callers = (0..<100).map { _ in Task { try await harness.repo.getMoments(userID: "0") } }
    for await event in harness.repo.events where event == .requestJoined(key: "0", callers: 100) { break }
    for caller in callers.dropLast() { caller.cancel() }
    for caller in callers.dropLast() {
      await #expect(throws: MomentsRepoError.cancelled) { try await caller.value }
    }
    gate.open()
    try await callers[99].value
    #expect(harness.getMoments.requestedUserIDs == ["0"])
    #expect(await harness.repo.momentsDetails.first(1) == [.fixture()])
  }

  @Test func `Cancelling all callers cancels the request`() async throws {
    let gate = Gate()
    let harness = RepoHarness(getMoments: { _ throws(APISessionError) in
      // Returns only when the request is cancelled, because the gate stays closed.
      await gate.pass()
      throw .cancelled
    })
    let callers = (0..<3).map { _ in Task { try await harness.repo.getMoments(userID: "0") } }
    for await event in harness.repo.events where event == .requestJoined(key: "0", callers: 3) { break }
    await gate.arrivals()
    for caller in callers { caller.cancel() }
    for caller in callers { await #expect(throws: MomentsRepoError.cancelled) { try await caller.value } }
    for await event in harness.repo.events where event == .requestCancelled(key: "0") { break }
    #expect(harness.getMoments.requestedUserIDs == ["0"])
  }

  // MARK: - Freshness

  @Test func `A fresh timeline is not fetched again, and a stale one is shown, then fetched once`() async throws {
    let currentTime = Lock(Date(timeIntervalSince1970: 1_000))
    let now: @Sendable () -> Date = { currentTime.withLock { $0 } }
    let storage = InMemoryStorage()
    let session = GetMomentsByUserIDSessionStub { _ in .fixture(name: "Fresh") }
    func makeRepo() -> MomentsRepo {
      MomentsRepo(
        persistentDataStore: PersistentDataStore(InMemoryStore(storage: storage, now: now)),
        getMomentsByUserIDSession: session, updateMomentLikeSession: UpdateMomentLikeSessionStub { _ in .fixture() },
        freshness: Freshness(timeToLive: .seconds(60)), now: now)
    }
    try await PersistentDataStore(InMemoryStore(storage: storage, now: now))
      .save(momentsDetails: .fixture(name: "Stale"), userID: "0")

    // Each repository simulates a process. For both, the age of the timeline is 59.999 seconds.
    for _ in 0..<2 {
      let repo = makeRepo()
      currentTime.withLock { $0 = Date(timeIntervalSince1970: 1_059.999) }
      try await repo.refreshMoments(userID: "0")
      #expect(session.requestedUserIDs == [])
      #expect(await repo.momentsDetails(userID: "0").first(1).map(\.userDetails.name) == ["Stale"])
    }

    let repo = makeRepo()
    let observer = repo.momentsDetails(userID: "0").subscribe()
    #expect(await observer.first(1).map(\.userDetails.name) == ["Stale"])
    currentTime.withLock { $0 = Date(timeIntervalSince1970: 1_060) }
    try await repo.refreshMoments(userID: "0")
    #expect(await observer.first(1).map(\.userDetails.name) == ["Fresh"])
    // The timeline was just saved, so it is fresh, also for the next process.
    try await repo.refreshMoments(userID: "0")
    try await makeRepo().refreshMoments(userID: "0")
    #expect(session.requestedUserIDs == ["0"])
  }

  @Test func `If no timeline is stored, one is fetched`() async throws {
    let harness = RepoHarness()
    try await harness.repo.refreshMoments(userID: "0")
    #expect(harness.getMoments.requestedUserIDs == ["0"])
  }

  // MARK: - Load state

  @Test func `The load state reports a load and its failure, and keeps the known timeline`() async throws {
    let time = Date(timeIntervalSince1970: 1_000)
    let isOffline = Lock(true)
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore(now: { time })),
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ throws(APISessionError) in
        if isOffline.withLock({ $0 }) { throw .timedOut }
        return .fixture()
      },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ throws(APISessionError) in throw .timedOut })
    let states = repo.loadState(userID: "0").buffering(.unbounded).subscribe()

    await #expect(throws: MomentsRepoError.session(.timedOut)) { try await repo.getMoments(userID: "0") }
    isOffline.withLock { $0 = false }
    try await repo.getMoments(userID: "0")
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    isOffline.withLock { $0 = true }
    await #expect(throws: MomentsRepoError.session(.timedOut)) { try await repo.getMoments(userID: "0") }

    let loaded = LoadedValue(MomentsDetails.fixture(), savedAt: time)
    var liked = MomentsDetails.fixture(likedMomentIDs: ["0"])
    liked.moments[0].likes = [.init(id: "0", avatar: "https://example.com/avatars/0.png")]
    let pending = LoadedValue(liked, savedAt: time, isPending: true)
    #expect(
      await states.first(9) == [
        .idle, .loading(previous: nil), .failed(.session(.timedOut), previous: nil),
        .loading(previous: nil), .loading(previous: loaded), .loaded(loaded),
        .loaded(pending), .loading(previous: pending), .failed(.session(.timedOut), previous: pending),
      ])
  }

  @Test func `After a cancelled load, the load state still has the stored timeline and no failure`() async throws {
    let gate = Gate()
    let harness = RepoHarness(getMoments: { _ throws(APISessionError) in
      await gate.pass()
      throw .cancelled
    })
    try await harness.store.save(momentsDetails: .fixture(), userID: "0")
    let states = harness.repo.loadState(userID: "0").buffering(.unbounded).subscribe()
    #expect(await states.first(1).map(\.value) == [.fixture()])
    let caller = Task { try await harness.repo.getMoments(userID: "0") }
    await gate.arrivals()
    caller.cancel()
    await #expect(throws: MomentsRepoError.cancelled) { try await caller.value }
    let laterStates = await states.first(2)
    #expect(laterStates.map(\.isLoading) == [true, false])
    #expect(laterStates.map(\.value) == [.fixture(), .fixture()])
    #expect(laterStates[1].failure == nil)
  }

  @Test func `A removed timeline is removed from the load state too`() async throws {
    let harness = RepoHarness()
    try await harness.repo.getMoments(userID: "0")
    let states = harness.repo.loadState(userID: "0").buffering(.unbounded).subscribe()
    #expect(await states.first(1).map(\.value) == [.fixture()])
    try await harness.store.removeMomentsDetails(userID: "0")
    #expect(await states.first(1) == [.idle])
  }

  @Test func `A load that is cancelled as soon as it begins doesn't hide the result of the next one`() async throws {
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()),
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ throws(APISessionError) in
        if Task.isCancelled { throw .cancelled }
        throw .timedOut
      },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ in .fixture() })
    var hiddenResultCount = 0
    for _ in 0..<1_000 {
      let events = repo.events.subscribe()
      let cancelledCaller = Task(priority: .background) { _ = try? await repo.getMoments(userID: "0") }
      for await event in events {
        guard case .requestStarted = event else { continue }
        break
      }
      cancelledCaller.cancel()
      // Waits until the request has finished or was cancelled. A cancelled one may still run.
      for await event in events {
        switch event {
        case .requestCancelled, .requestFailed, .requestFinished: break
        default: continue
        }
        break
      }
      await #expect(throws: MomentsRepoError.session(.timedOut)) { try await repo.getMoments(userID: "0") }
      if await repo.loadState(userID: "0").first(1) != [.failed(.session(.timedOut), previous: nil)] {
        hiddenResultCount += 1
      }
      await cancelledCaller.value
    }
    #expect(hiddenResultCount == 0)
  }
}
