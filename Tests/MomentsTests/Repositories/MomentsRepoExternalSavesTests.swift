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
  /// Replies that a test delays.
  private final class Replies: Sendable {
    let gates = [Gate(), Gate()]
    private let names: Lock<[String]>
    private let count = Lock(0)

    init(_ names: [String]) {
      self.names = Lock(names)
    }

    func next() async -> MomentsDetails {
      let number = count.withLock { count in
        count += 1
        return count - 1
      }
      if number < gates.count { await gates[number].pass() }
      return .fixture(name: names.withLock { $0[min(number, $0.count - 1)] })
    }
  }

  @Test func `The reply to a request sent before an external save isn't stored, and the timeline is fetched again`()
    async throws
  {
    let replies = Replies(["old", "newest"])
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
    let replies = Replies(["own", "old", "newest"])
    replies.gates[0].open()
    let saving = Gate()
    let shared = InMemoryStore()
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InterposedStore(shared, beforeSaving: { _ in await saving.pass() })),
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ in await replies.next() },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ in .fixture() })
    let observer = repo.momentsDetails(userID: "0").subscribe()
    let external = PersistentDataStore(shared)
    try await external.save(momentsDetails: .fixture(name: "first"), userID: "0")
    #expect(await observer.first(1).map(\.userDetails.name) == ["first"])

    let load = Task { try await repo.getMoments(userID: "0") }
    await saving.arrivals()
    let reload = Task { try await repo.reloadMoments(userID: "0") }
    await replies.gates[1].arrivals()
    try await external.save(momentsDetails: .fixture(name: "other"), userID: "0")
    replies.gates[1].open()
    saving.open()
    try await load.value
    try await reload.value
    // Both replies may be older than the external save, so the timeline is fetched again for both calls.
    var names: [String] = []
    for await details in observer {
      names.append(details.userDetails.name)
      if names.last == "newest" { break }
    }
    #expect(names == ["other", "newest"])
    #expect(try await external.momentsDetails(userID: "0")?.value.userDetails.name == "newest")
  }

  @Test func `Replies to requests that were sent after the repository's own saves aren't discarded`() async throws {
    let harness = RepoHarness()
    let observer = harness.repo.momentsDetails(userID: "0").subscribe()
    for _ in 0..<20 { try await harness.repo.getMoments(userID: "0") }
    #expect(harness.getMoments.requestedUserIDs.count == 20)
    #expect(await observer.first(20).count == 20)
  }
}
