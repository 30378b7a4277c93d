import DataStore
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import Testing

/// Concurrent loads and likes, with replies that overtake each other or are lost, while the server's timeline grows.
///
/// However these steps interleave, every timeline that observers see is a contiguous part of the server's timeline.
@Suite(.timeLimit(.minutes(15))) struct MomentsRepoPagingInterleavingTests {
  @Test
  func `No observer sees a gap, a duplicate, an older timeline after a newer one, or a like that flickers`()
    async throws
  {
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    for seed in first..<first + 300 { try await simulate(seed: seed) }
  }

  private func simulate(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let server = SimulatedServer(momentIDs: (0..<12).map(String.init))
    let store = PersistentDataStore(InMemoryStore())
    var repo: MomentsRepo? = MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: server, updateMomentLikeSession: server, pageSize: 3,
      retryPolicy: RetryPolicy(base: .zero))
    let observer = repo!.momentsDetails(userID: "0").subscribe()
    let observing = Task { await observer.reduce(into: []) { $0.append($1) } }

    var callers: [Task<Void, Never>] = []
    var inserted = 0
    for _ in 0..<60 {
      switch Int.random(in: 0..<16, using: &random) {
      case 0, 1: callers.append(Task { [repo] in _ = try? await repo!.reloadMoments(userID: "0") })
      case 2, 3, 4: callers.append(Task { [repo] in _ = try? await repo!.loadMoreMoments(userID: "0") })
      case 5:
        // Every other run makes no likes, because the reply to a like is a complete timeline, which has no next page.
        guard seed.isMultiple(of: 2) else { continue }
        let momentID = ["0", "11"].randomElement(using: &random)!
        let isLiked = Bool.random(using: &random)
        callers.append(
          Task { [repo] in _ = try? await repo!.updateLike(isLiked: isLiked, momentID: momentID, fromUserID: "0") })
      case 6, 7, 8, 9: server.serve(using: &random)
      case 10, 11, 12: server.deliver(using: &random)
      case 13: server.lose(using: &random)
      case 14:
        inserted += 1
        server.insert("new \(inserted)")
      default: callers.randomElement(using: &random)?.cancel()
      }
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
    repo = nil

    let seen = await observing.value
    check(seen, server, seed)
    let complete = server.details.moments
    #expect(try await store.momentsDetails(userID: "0")?.value.moments.map(\.id) == complete.map(\.id), "seed \(seed)")
    #expect(seen.last?.moments.map(\.isLiked) == complete.map(\.isLiked), "seed \(seed)")
  }

  private func check(_ seen: [MomentsDetails], _ server: SimulatedServer, _ seed: UInt64) {
    let complete = server.details.moments.map(\.id)
    for details in seen {
      let ids = details.moments.map(\.id)
      let start = complete.firstIndex(of: ids[0])!
      #expect(Array(complete[start...].prefix(ids.count)) == ids, "seed \(seed)")
      #expect(details.pageInfo?.endCursor == ids.last, "seed \(seed)")
      #expect(details.pageInfo?.hasNextPage == (ids.last != complete.last), "seed \(seed)")
    }
    let states = seen.map { Int($0.userDetails.name)! }
    for (earlier, later) in zip(states, states.dropFirst()) {
      #expect(earlier <= later, "An older timeline after a newer one, seed \(seed): \(states)")
    }
    for momentID in complete {
      // Observers may miss a change of a like, because a moment isn't always loaded. But they see the changes in the
      // order in which the server received them.
      let shown = seen.compactMap { details in details.moments.first { $0.id == momentID }?.isLiked }
      var made = ([false] + server.received(for: momentID))[...]
      for isLiked in shown where isLiked != made.first {
        made = made.drop { $0 != isLiked }
        #expect(!made.isEmpty, "Moment \(momentID) flickers, seed \(seed)")
      }
    }
  }
}
