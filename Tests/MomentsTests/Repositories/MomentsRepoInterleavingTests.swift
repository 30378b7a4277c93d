import DataStore
import Foundation
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestRounds
import TestSupport
import Testing

/// Concurrent fetches and likes: a reply may overtake another one or be unusable, a request or its reply may be lost, a
/// like that is sent again may get its first reply again, and a caller may be cancelled.
///
/// In any order of these steps, observers see no older timeline after a newer one, and no like flickers: none
/// disappears before it is undone.
@Suite(.timeLimit(.minutes(15))) struct MomentsRepoInterleavingTests {
  private static let seedCount = UInt64(Rounds.count(60, full: 1_500))
  private static let momentIDs = ["a", "b", "c"]

  @Test func `No observer sees an older timeline after a newer one, or a like that flickers`() async throws {
    let firstSeed = Rounds.fixedSeed ?? .random(in: 0...UInt64(UInt32.max))
    for seed in firstSeed..<firstSeed + Self.seedCount { try await simulate(seed: seed) }
  }

  private func simulate(seed: UInt64) async throws {
    var random = SplitMix64(seed: seed)
    let server = SimulatedServer(momentIDs: Self.momentIDs)
    let store = PersistentDataStore(InMemoryStore())
    try await store.save(momentsDetails: server.details, userID: "0")
    var repo: MomentsRepo? = MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: server, updateMomentLikeSession: server,
      retryPolicy: RetryPolicy(base: .zero))
    let observers = (0..<2).map { _ in repo!.momentsDetails(userID: "0").subscribe() }
    let recordings = observers.map { observer in Task { await observer.reduce(into: []) { $0.append($1) } } }
    #expect(await repo!.momentsDetails(userID: "0").first(1) == [server.details])

    var callers: [Task<Void, Never>] = []
    // Takes 60 random steps. A case with more numbers is chosen more often.
    for _ in 0..<60 {
      switch Int.random(in: 0..<17, using: &random) {
      case 0, 1: callers.append(Task { [repo] in _ = try? await repo!.getMoments(userID: "0") })
      case 2, 3:
        let momentID = Self.momentIDs.randomElement(using: &random)!
        let isLiked = Bool.random(using: &random)
        callers.append(
          Task { [repo] in _ = try? await repo!.updateLike(isLiked: isLiked, momentID: momentID, fromUserID: "0") })
      case 4, 5, 6: server.serve(using: &random)
      case 7, 8, 9: server.deliver(using: &random)
      case 10, 11, 12: server.lose(using: &random)
      case 13, 14: server.changeExternally()
      case 15: server.corrupt(using: &random)
      default: callers.randomElement(using: &random)?.cancel()
      }
      // The next step follows either at once or after the effects of this one.
      for _ in 0..<[0, 10, 100].randomElement(using: &random)! { await Task.yield() }
    }

    server.answerAll()
    for caller in callers { await caller.value }
    await repo!.waitUntilSent()
    try await repo!.getMoments(userID: "0")
    for await pending in repo!.pendingLikes(userID: "0") where pending.isEmpty { break }
    // The streams finish when the repository is released.
    repo = nil

    for recording in recordings { check(await recording.value, against: server, seed: seed) }
    #expect(try await store.momentsDetails(userID: "0")?.value == server.details, "seed \(seed)")
  }

  private func check(_ seen: [MomentsDetails], against server: SimulatedServer, seed: UInt64) {
    // The user name of a timeline is the number of the server's state.
    let stateNumbers = seen.map { Int($0.userDetails.name)! }
    for (earlier, later) in zip(stateNumbers, stateNumbers.dropFirst()) {
      #expect(earlier <= later, "An older timeline after a newer one, seed \(seed): \(stateNumbers)")
    }
    #expect(seen.last == server.details, "seed \(seed)")
    for (index, momentID) in Self.momentIDs.enumerated() {
      // Every like is shown when it is made, and stays until the next one. The server serves likes in the order in
      // which they were made.
      let shown = withoutRepetitions(seen.map { $0.moments[index].isLiked! })
      let made = withoutRepetitions([false] + server.servedLikes(of: momentID))
      #expect(shown == made, "Moment \(momentID), seed \(seed)")
    }
  }

  private func withoutRepetitions(_ values: [Bool]) -> [Bool] {
    values.reduce(into: []) { if $0.last != $1 { $0.append($1) } }
  }
}
