import DataStore
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestRounds
import Testing

/// Concurrent loads and likes, with replies that overtake each other or are lost, while the server's timeline grows.
///
/// However these steps interleave, every timeline that observers see is a contiguous part of the server's timeline.
@Suite(.timeLimit(.minutes(15))) struct MomentsRepoPagingInterleavingTests {
  private static let seedCount = UInt64(Rounds.count(40, full: 1_500))

  @Test
  func `No observer sees a gap, a duplicate, an older timeline after a newer one, or a like that flickers`()
    async throws
  {
    let firstSeed = Rounds.fixedSeed ?? .random(in: 0...UInt64(UInt32.max))
    for seed in firstSeed..<firstSeed + Self.seedCount { try await simulate(seed: seed) }
  }

  private func simulate(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let server = SimulatedServer(momentIDs: (0..<12).map { "\($0)" })
    let store = PersistentDataStore(InMemoryStore())
    var repo: MomentsRepo? = MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: server, updateMomentLikeSession: server, pageSize: 3,
      retryPolicy: RetryPolicy(base: .zero))
    let observer = repo!.momentsDetails(userID: "0").subscribe()
    let recording = Task { await observer.reduce(into: []) { $0.append($1) } }

    var callers: [Task<Void, Never>] = []
    var insertedCount = 0
    // Takes 60 random steps. A case with more numbers is chosen more often.
    for _ in 0..<60 {
      switch Int.random(in: 0..<16, using: &random) {
      case 0, 1: callers.append(Task { [repo] in _ = try? await repo!.reloadMoments(userID: "0") })
      case 2, 3, 4: callers.append(Task { [repo] in _ = try? await repo!.loadMoreMoments(userID: "0") })
      case 5:
        // Every other run makes no likes, because the reply to a like is a complete timeline, which leaves no next page
        // to load.
        guard seed.isMultiple(of: 2) else { continue }
        let momentID = ["0", "11"].randomElement(using: &random)!
        let isLiked = Bool.random(using: &random)
        callers.append(
          Task { [repo] in _ = try? await repo!.updateLike(isLiked: isLiked, momentID: momentID, fromUserID: "0") })
      case 6, 7, 8, 9: server.serve(using: &random)
      case 10, 11, 12: server.deliver(using: &random)
      case 13: server.lose(using: &random)
      case 14:
        insertedCount += 1
        server.insert("new \(insertedCount)")
      default: callers.randomElement(using: &random)?.cancel()
      }
      // The next step follows either at once or after the effects of this one.
      for _ in 0..<[0, 10, 100].randomElement(using: &random)! { await Task.yield() }
    }

    server.answerAll()
    for caller in callers { await caller.value }
    await repo!.waitUntilSent()
    // Without further changes, the pages lead to the end of the timeline.
    try await repo!.reloadMoments(userID: "0")
    while try await store.momentsDetails(userID: "0")?.value.pageInfo?.hasNextPage == true {
      try await repo!.loadMoreMoments(userID: "0")
    }
    for await pending in repo!.pendingLikes(userID: "0") where pending.isEmpty { break }
    // The stream finishes when the repository is released.
    repo = nil

    let seen = await recording.value
    check(seen, against: server, seed: seed)
    let serverMoments = server.details.moments
    #expect(
      try await store.momentsDetails(userID: "0")?.value.moments.map(\.id) == serverMoments.map(\.id), "seed \(seed)")
    #expect(seen.last?.moments.map(\.isLiked) == serverMoments.map(\.isLiked), "seed \(seed)")
  }

  private func check(_ seen: [MomentsDetails], against server: SimulatedServer, seed: UInt64) {
    let serverIDs = server.details.moments.map(\.id)
    for details in seen {
      let ids = details.moments.map(\.id)
      let start = serverIDs.firstIndex(of: ids[0])!
      #expect(Array(serverIDs[start...].prefix(ids.count)) == ids, "seed \(seed)")
      #expect(details.pageInfo?.endCursor == ids.last, "seed \(seed)")
      #expect(details.pageInfo?.hasNextPage == (ids.last != serverIDs.last), "seed \(seed)")
    }
    // The user name of a timeline is the number of the server's state.
    let stateNumbers = seen.map { Int($0.userDetails.name)! }
    for (earlier, later) in zip(stateNumbers, stateNumbers.dropFirst()) {
      #expect(earlier <= later, "An older timeline after a newer one, seed \(seed): \(stateNumbers)")
    }
    for momentID in serverIDs {
      // Observers may miss a change of a like, because a moment isn't always loaded. But they see the changes in the
      // order in which the server received them.
      let shown = seen.compactMap { details in details.moments.first { $0.id == momentID }?.isLiked }
      var remainingLikes = ([false] + server.servedLikes(of: momentID))[...]
      for isLiked in shown where isLiked != remainingLikes.first {
        remainingLikes = remainingLikes.drop { $0 != isLiked }
        #expect(!remainingLikes.isEmpty, "Moment \(momentID) flickers, seed \(seed)")
      }
    }
  }
}
