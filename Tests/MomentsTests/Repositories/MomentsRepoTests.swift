import DataStore
import Foundation
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct MomentsRepoTests {
  // MARK: - Start

  @Test func `A timeline that was stored before the repository existed arrives first`() async throws {
    let store = PersistentDataStore(InMemoryStore())
    try await store.save(momentsDetails: .fixture(name: "Earlier"), userID: "0")
    let harness = RepoHarness(store: store)
    let allUsersObserver = harness.repo.momentsDetails.subscribe()
    let oneUserObserver = harness.repo.momentsDetails(userID: "0").subscribe()
    #expect(await allUsersObserver.first(1).map(\.userDetails.name) == ["Earlier"])
    #expect(await oneUserObserver.first(1).map(\.userDetails.name) == ["Earlier"])
  }

  @Test
  func `Observers of a user receive that user's timeline, and those of all users first receive the one saved last`()
    async throws
  {
    let currentTime = Lock(Date(timeIntervalSince1970: 1_000))
    let memoryStore = InMemoryStore(now: { currentTime.withLock { $0 } })
    let store = PersistentDataStore(memoryStore)
    // The clock is set back, so the timeline saved last doesn't have the latest time.
    for (userID, time) in [("2", 30.0), ("0", 10), ("1", 20)] {
      currentTime.withLock { $0 = Date(timeIntervalSince1970: time) }
      try await store.save(momentsDetails: .fixture(userID: userID), userID: userID)
    }
    let harness = RepoHarness(store: store)
    for userID in ["0", "1", "2"] {
      let details = await harness.repo.momentsDetails(userID: userID).first(1)
      #expect(details.map(\.userDetails.id) == [userID])
    }
    #expect(await harness.repo.momentsDetails.first(1).map(\.userDetails.id) == ["1"])
  }

  @Test func `An observer of an empty store receives nothing before the first save`() async throws {
    let harness = RepoHarness()
    let observer = harness.repo.momentsDetails.subscribe()
    try await harness.repo.getMoments(userID: "0")
    try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0")
    // The fetched timeline, the timeline with the pending like, and the server's reply to the like.
    let seen = await observer.first(3)
    #expect(seen.map { $0.moments[0].isLiked } == [false, true, true])
    #expect(observer.droppedCount == 0)
  }

  // MARK: - Getting

  @Test func `getMoments makes one request and one save, and earlier and new observers receive the result`()
    async throws
  {
    let harness = RepoHarness()
    let observer = harness.repo.momentsDetails.subscribe()
    try await harness.repo.getMoments(userID: "7")
    #expect(harness.getMoments.requestedUserIDs == ["7"])
    #expect(try await harness.store.momentsDetails(userID: "7")?.value == .fixture(userID: "7"))
    #expect(try await harness.store.momentsDetails(userID: "7")?.revision == 1)
    #expect(await harness.repo.momentsDetails.first(1) == [.fixture(userID: "7")])
    #expect(await harness.repo.momentsDetails(userID: "7").first(1) == [.fixture(userID: "7")])
    #expect(await observer.first(1) == [.fixture(userID: "7")])
  }

  @Test func `The timelines of different users don't overwrite each other`() async throws {
    let harness = RepoHarness()
    let allUsersObserver = harness.repo.momentsDetails.subscribe()
    for userID in ["0", "1"] { try await harness.repo.getMoments(userID: userID) }
    #expect(try await harness.store.momentsDetails(userID: "0")?.value.userDetails.id == "0")
    #expect(try await harness.store.momentsDetails(userID: "1")?.value.userDetails.id == "1")
    #expect(await harness.repo.momentsDetails(userID: "0").first(1).map(\.userDetails.id) == ["0"])
    #expect(await allUsersObserver.first(2).map(\.userDetails.id) == ["0", "1"])
  }

  @Test func `A call whose request fails throws the error and leaves the stored timeline unchanged`() async throws {
    let isServerDown = Lock(false)
    let harness = RepoHarness(
      getMoments: { userID throws(APISessionError) in
        if isServerDown.withLock({ $0 }) { throw .statusCode(500, bodyExcerpt: "down") }
        return .fixture(userID: userID)
      },
      updateLike: { _ throws(APISessionError) in throw .statusCode(403, bodyExcerpt: "no") })
    try await harness.repo.getMoments(userID: "0")
    isServerDown.withLock { $0 = true }
    await #expect(throws: MomentsRepoError.session(.statusCode(500, bodyExcerpt: "down"))) {
      try await harness.repo.getMoments(userID: "0")
    }
    await #expect(throws: MomentsRepoError.session(.statusCode(403, bodyExcerpt: "no"))) {
      try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0")
    }
    #expect(await harness.repo.momentsDetails.first(1) == [.fixture()])
    #expect(try await harness.store.momentsDetails(userID: "0")?.revision == 1)
  }

  @Test func `Cancelling the caller cancels the request, saves nothing, and makes the call throw`() async throws {
    let gate = Gate()
    let (cancellationChecks, continuation) = AsyncStream.makeStream(of: Bool.self)
    let harness = RepoHarness(getMoments: { _ throws(APISessionError) in
      // The gate stays closed, so only cancellation ends this call.
      await gate.pass()
      continuation.yield(Task.isCancelled)
      throw .cancelled
    })
    let caller = Task { () async -> MomentsRepoError? in
      do throws(MomentsRepoError) {
        try await harness.repo.getMoments(userID: "0")
        return nil
      } catch {
        return error
      }
    }
    await gate.arrivals()
    caller.cancel()
    #expect(await caller.value == .cancelled)
    // The cancelled caller doesn't wait until the request has ended, but the test does.
    #expect(await cancellationChecks.first { _ in true } == true)
    #expect(try await harness.store.momentsDetails(userID: "0") == nil)
  }

  // MARK: - Liking

  @Test func `updateLike passes its three arguments to the session and saves the reply`() async throws {
    let harness = RepoHarness()
    try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "7")
    try await harness.repo.updateLike(isLiked: false, momentID: "0", fromUserID: "7")
    #expect(
      harness.updateLike.requests == [
        .init(isLiked: true, momentID: "0", userID: "7"), .init(isLiked: false, momentID: "0", userID: "7"),
      ])
    #expect(try await harness.store.momentsDetails(userID: "7")?.value == .fixture(userID: "7"))
  }

  @Test func `A like reaches every observer of its timeline`() async throws {
    let harness = RepoHarness()
    try await harness.repo.getMoments(userID: "0")
    let observers = [
      harness.repo.momentsDetails.subscribe(), harness.repo.momentsDetails(userID: "0").subscribe(),
      harness.repo.momentsDetails(userID: "0").buffering(.latest).subscribe(),
      harness.repo.momentsDetails(userID: "0").buffering(.dropOldest(8)).subscribe(),
    ]
    let otherUserObserver = harness.repo.momentsDetails(userID: "1").subscribe()
    try await harness.repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0")
    // The stored timeline, then the timelines with the pending and with the confirmed like.
    #expect(await observers[0].first(3).map { $0.moments[0].isLiked } == [false, true, true])
    #expect(await observers[1].first(3).map { $0.moments[0].isLiked } == [false, true, true])
    #expect(await observers[2].first(1).map { $0.moments[0].isLiked } == [true])
    #expect(await observers[3].first(3).map { $0.moments[0].isLiked } == [false, true, true])
    // The observer of the other user received no timeline of this user.
    try await harness.repo.getMoments(userID: "1")
    #expect(await otherUserObserver.first(1).map(\.userDetails.id) == ["1"])
  }

  // MARK: - The store

  @Test func `Every save, even one not made by the repository, reaches each observer once and in order`() async throws {
    let harness = RepoHarness()
    try await harness.repo.getMoments(userID: "0")
    let observers = (0..<3).map { _ in harness.repo.momentsDetails.subscribe() }
    for number in 1...5 { try await harness.store.save(momentsDetails: .fixture(name: "\(number)"), userID: "0") }
    // “Jake Lin” is the user name of the fetched timeline.
    for observer in observers {
      #expect(await observer.first(6).map(\.userDetails.name) == ["Jake Lin", "1", "2", "3", "4", "5"])
    }
  }

  @Test func `A removed timeline is not replayed`() async throws {
    let harness = RepoHarness()
    try await harness.repo.getMoments(userID: "0")
    try await harness.store.removeMomentsDetails(userID: "0")
    // Changes arrive in order, so the removal has arrived when the next change has.
    try await harness.repo.getMoments(userID: "1")
    let lateObserver = harness.repo.momentsDetails(userID: "0").subscribe()
    try await harness.store.save(momentsDetails: .fixture(name: "Again"), userID: "0")
    #expect(await lateObserver.first(1).map(\.userDetails.name) == ["Again"])
  }

  @Test func `Undecodable bytes are reported and quarantined, and observers get the next valid save`() async throws {
    let folder = TemporaryFolder()
    try await PersistentDataStore(FileStore(folder: folder.url)).save(momentsDetails: .fixture(), userID: "0")
    try Data("{ half".utf8).write(to: folder.url.appending(path: "moments-details.0.value"))

    let store = PersistentDataStore(FileStore(folder: folder.url))
    let repo = MomentsRepo(
      persistentDataStore: store,
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ in .fixture(name: "Fresh") },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ in .fixture() })
    let observer = repo.momentsDetails(userID: "0").subscribe()
    let event = try #require(await store.events.first(1).first)
    guard case .valueQuarantined(let key, let movedTo, _) = event else {
      Issue.record("Unexpected event \(event)")
      return
    }
    #expect(key == StoreKeyName("moments-details", id: "0"))
    #expect(try Data(contentsOf: URL(filePath: movedTo)) == Data("{ half".utf8))
    try await repo.getMoments(userID: "0")
    #expect(await observer.first(1).map(\.userDetails.name) == ["Fresh"])
  }

  @Test func `If the store can't be opened, the call throws, and the next call tries again`() async throws {
    let folder = try TemporaryFolder.created()
    let fileURL = folder.url.appending(path: "store")
    // A file in place of the folder makes every call of the store fail.
    try Data().write(to: fileURL)
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(FileStore(folder: fileURL)),
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ in .fixture() },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ in .fixture() })
    let observer = repo.momentsDetails.subscribe()
    do throws(MomentsRepoError) {
      try await repo.getMoments(userID: "0")
      Issue.record("The call didn't throw.")
    } catch {
      guard case .store = error else {
        Issue.record("Unexpected error \(error)")
        return
      }
    }
    try FileManager.default.removeItem(at: fileURL)
    try await repo.getMoments(userID: "0")
    #expect(await observer.first(1) == [.fixture()])
  }

  enum StoreKind: CaseIterable { case memory, file, userDefaults }

  @Test(arguments: StoreKind.allCases)
  func `The repository works on any store`(_ kind: StoreKind) async throws {
    let folder = TemporaryFolder()
    let suiteName = "moments-tests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let store: any PersistentDataStoreType =
      switch kind {
      case .memory: PersistentDataStore(InMemoryStore())
      case .file: PersistentDataStore(FileStore(folder: folder.url))
      case .userDefaults: UserDefaultsPersistentDataStore(UserDefaultsStore(suiteName: suiteName))
      }
    let repo = MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { .fixture(userID: $0) },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { .fixture(likedMomentIDs: [$0.momentID]) })
    let observer = repo.momentsDetails.subscribe()
    try await repo.getMoments(userID: "0")
    try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0")
    #expect(await observer.first(3).map { $0.moments[0].isLiked } == [false, true, true])
    #expect(await repo.momentsDetails.first(1) == [.fixture(likedMomentIDs: ["0"])])
    #expect(try await store.momentsDetails(userID: "0")?.value == .fixture(likedMomentIDs: ["0"]))
  }

  // MARK: - Lifetime

  @Test func `Streams finish when the repository is released, and don't keep it alive`() async throws {
    var harness: RepoHarness? = RepoHarness()
    weak let repo = harness?.repo
    let allUsersObserver = try #require(harness).repo.momentsDetails.subscribe()
    let oneUserObserver = try #require(harness).repo.momentsDetails(userID: "0").subscribe()
    try await #require(harness).repo.getMoments(userID: "0")
    harness = nil
    #expect(repo == nil)
    // Each stream finishes after its only timeline, so a second one doesn't arrive.
    #expect(await allUsersObserver.first(2) == [.fixture()])
    #expect(await oneUserObserver.first(2) == [.fixture()])
  }
}
