import DataStore
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

/// A reply to a request that was sent before an external save may be older than the saved timeline.
@Suite(.timeLimit(.minutes(15))) struct MomentsRepoExternalSavesTests {
  /// Replies of which the first two wait until a test opens their gates.
  ///
  /// Each reply has the next of the given user names. After the last name, that name repeats.
  private final class Replies: Sendable {
    let gates = [Gate(), Gate()]
    private let userNames: Lock<[String]>
    private let requestCount = Lock(0)

    init(userNames: [String]) {
      self.userNames = Lock(userNames)
    }

    func next() async -> MomentsDetails {
      let index = requestCount.withLock { count in
        count += 1
        return count - 1
      }
      if index < gates.count { await gates[index].pass() }
      return .fixture(name: userNames.withLock { $0[min(index, $0.count - 1)] })
    }
  }

  @Test func `The reply to a request sent before an external save isn't stored, and the timeline is fetched again`()
    async throws
  {
    let replies = Replies(userNames: ["old", "newest"])
    replies.gates[1].open()
    let harness = RepoHarness(getMoments: { _ in await replies.next() })
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    let events = harness.repo.events.subscribe()
    // Once the observer has received this save, the repository is observing the store.
    try await harness.store.save(momentsDetails: .fixture(name: "first"), userID: "0")
    #expect(await observer.first(1).map(\.userDetails.name) == ["first"])
    let load = Task { try await harness.repo.getMoments(userID: "0") }
    await replies.gates[0].arrivals()
    try await harness.store.save(momentsDetails: .fixture(name: "new"), userID: "0")
    #expect(await observer.first(1).map(\.userDetails.name) == ["new"])
    replies.gates[0].open()
    try await load.value
    #expect(await observer.first(1).map(\.userDetails.name) == ["newest"])
    #expect(harness.getMoments.requestedUserIDs == ["0", "0"])
    var reported: [RepositoryEvent] = []
    for await event in events {
      reported.append(event)
      if event == .requestFinished(key: "0") { break }
    }
    #expect(reported.filter { $0 == .replyDiscarded(key: "0") }.count == 1)
    #expect(try await harness.store.momentsDetails(userID: "0")?.value.userDetails.name == "newest")
  }

  @Test
  func
    `An external save that precedes the repository's own save is kept, and the timeline is fetched again`()
    async throws
  {
    let replies = Replies(userNames: ["own", "old", "newest"])
    replies.gates[0].open()
    let saveGate = Gate()
    let sharedStore = InMemoryStore()
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(
        InterposedStore(sharedStore, beforeSaving: { _ in await saveGate.pass() })),
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ in await replies.next() },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ in .fixture() })
    let observer = repo.momentsDetails(userID: "0").subscribe()
    let externalStore = PersistentDataStore(sharedStore)
    try await externalStore.save(momentsDetails: .fixture(name: "first"), userID: "0")
    #expect(await observer.first(1).map(\.userDetails.name) == ["first"])

    let load = Task { try await repo.reloadMoments(userID: "0") }
    await saveGate.arrivals()
    let reload = Task { try await repo.getMoments(userID: "0") }
    await replies.gates[1].arrivals()
    try await externalStore.save(momentsDetails: .fixture(name: "other"), userID: "0")
    replies.gates[1].open()
    saveGate.open()
    try await load.value
    try await reload.value
    // Both replies may be older than the external save, so each of the two calls fetches the timeline again.
    var names: [String] = []
    for await details in observer {
      names.append(details.userDetails.name)
      if names.last == "newest" { break }
    }
    #expect(names == ["other", "newest"])
    #expect(try await externalStore.momentsDetails(userID: "0")?.value.userDetails.name == "newest")
  }

  @Test func `Replies to requests that were sent after the repository's own saves aren't discarded`() async throws {
    let count = Lock(0)
    let harness = RepoHarness(getMoments: { _ in
      .fixture(
        name: count.withLock {
          $0 += 1; return "\($0)"
        })
    })
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    for _ in 0..<20 { try await harness.repo.getMoments(userID: "0") }
    #expect(harness.getMoments.requestedUserIDs.count == 20)
    #expect(await observer.first(20).count == 20)
  }
}
