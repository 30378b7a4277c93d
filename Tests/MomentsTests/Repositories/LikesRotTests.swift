import DataStore
import Foundation
import GraphQLClient
import Moments
import MomentsTesting
import Multicast
import MulticastTesting
import Repository
import TestRounds
import TestSupport
import Testing

/// Corrupt files of a timeline or of its queued likes don't affect the other likes.
@Suite(.timeLimit(.minutes(15))) struct LikesRotTests {
  private static let roundCount = Rounds.count(16, full: 400)

  /// The files of a stored timeline, and those of its queued likes in the order in which the likes were made.
  private struct Files: Sendable {
    let timeline: [String: Data]
    let likes: [(name: String, id: MutationID, like: MomentLike, bytes: Data)]
  }

  private static func makeFiles() async throws -> Files {
    let folder = TemporaryFolder()
    let store = PersistentDataStore(FileStore(folder: folder.url))
    try await store.save(momentsDetails: .fixture(momentIDs: ["0", "1", "2"]), userID: "0")
    let repo = MomentsRepo(
      persistentDataStore: store,
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ throws(APISessionError) in throw .timedOut },
      updateMomentLikeSession: UpdateMomentLikeSessionStub { _ throws(APISessionError) in throw .timedOut })
    // The last change unlikes the moment of the first one.
    for number in 0..<4 {
      try await repo.updateLike(isLiked: number != 3, momentID: "\(number % 3)", fromUserID: "0")
    }
    let fileNames = try FileManager.default.contentsOfDirectory(atPath: folder.url.path())
    func read(_ name: String) throws -> Data { try Data(contentsOf: folder.url.appending(path: name)) }
    let timelineFileNames = fileNames.filter { $0.hasPrefix("moments-details.") }
    return Files(
      timeline: try Dictionary(uniqueKeysWithValues: timelineFileNames.map { ($0, try read($0)) }),
      likes: try await repo.mutations.list().map { entry in
        let name = try #require(fileNames.first { $0.contains(entry.id.rawValue) })
        return (name, entry.id, entry.mutation, try read(name))
      })
  }

  /// Returns the bytes, either truncated or with some bits flipped.
  private static func corrupted(_ bytes: Data, using random: inout SplitMix64) -> Data {
    if Bool.random(using: &random) { return bytes.prefix(Int.random(in: 0..<bytes.count, using: &random)) }
    var bytes = bytes
    for bit in (0..<bytes.count * 8).shuffled(using: &random).prefix(Int.random(in: 1...8, using: &random)) {
      bytes[bit / 8] ^= 1 << (bit % 8)
    }
    return bytes
  }

  @Test func `Corrupt files are quarantined and reported, and all other likes are delivered in order`() async throws {
    let files = try await Self.makeFiles()
    try await sideBySide(8) { firstSeed in
      for seed in stride(from: firstSeed, to: Self.roundCount, by: 8) {
        try await Self.runRound(with: files, seed: seed)
      }
    }
  }

  /// Writes the files to a new folder, some of them corrupt, and checks a repository on that folder.
  private static func runRound(with files: Files, seed: Int) async throws {
    var random = SplitMix64(seed: UInt64(seed))
    let folder = try TemporaryFolder.created()
    var corruptBytes: [String: Data] = [:]
    /// Writes a file, which is corrupt with a probability of one third, and returns whether it is.
    func writePossiblyCorrupt(_ bytes: Data, as name: String) throws -> Bool {
      let isCorrupt = Int.random(in: 0..<3, using: &random) == 0
      if isCorrupt { corruptBytes[name] = corrupted(bytes, using: &random) }
      try (corruptBytes[name] ?? bytes).write(to: folder.url.appending(path: name))
      return isCorrupt
    }
    for (name, bytes) in files.timeline.sorted(by: { $0.key < $1.key }) {
      _ = try writePossiblyCorrupt(bytes, as: name)
    }
    let intactLikes = try files.likes.filter { try !writePossiblyCorrupt($0.bytes, as: $0.name) }
    try await check(folder, files, intactLikes: intactLikes, corruptBytes: corruptBytes, seed: seed)
  }

  private static func check(
    _ folder: TemporaryFolder, _ files: Files,
    intactLikes: [(name: String, id: MutationID, like: MomentLike, bytes: Data)], corruptBytes: [String: Data],
    seed: Int
  ) async throws {
    let server = UpdateMomentLikeSessionStub { request in
      .fixture(momentIDs: ["0", "1", "2"], likedMomentIDs: [request.momentID])
    }
    let store = PersistentDataStore(FileStore(folder: folder.url))
    let repo = MomentsRepo(
      persistentDataStore: store,
      getMomentsByUserIDSession: GetMomentsByUserIDSessionStub { _ in .fixture(momentIDs: ["0", "1", "2"]) },
      updateMomentLikeSession: server)
    let events = repo.events.subscribe()
    // Opens the timeline, which otherwise happens only when the first like is sent.
    let observer = repo.momentsDetails(userID: "0").subscribe()
    defer { observer.cancel() }

    // Each unreadable like is reported by one event, which names the file to which the bytes of the like were moved.
    var unreportedIDs = Set(files.likes.map(\.id)).subtracting(intactLikes.map(\.id))
    var failures: [StoreError] = []
    var iterator = events.makeAsyncIterator()
    while !unreportedIDs.isEmpty {
      switch await iterator.next() {
      case .mutationUnreadable(let id, let movedTo?, _):
        #expect(unreportedIDs.remove(id) != nil, "seed \(seed)")
        let name = try #require(files.likes.first { $0.id == id }).name
        #expect(try Data(contentsOf: URL(filePath: movedTo)) == corruptBytes[name], "seed \(seed)")
      case .storeFailed(let error)?: failures.append(error)
      default: continue
      }
    }
    if files.timeline.keys.contains(where: { corruptBytes[$0] != nil }) {
      // The value is quarantined even if only one of its parts is corrupt.
      let valueFileName = "moments-details.0.value"
      let bytes = corruptBytes[valueFileName] ?? files.timeline[valueFileName]
      // The store replays its last events, so an event from before this loop isn't missed.
      for await event in store.events {
        guard case .valueQuarantined(StoreKeyName("moments-details", id: "0"), let movedTo, _) = event else {
          continue
        }
        #expect(try Data(contentsOf: URL(filePath: movedTo)) == bytes, "seed \(seed)")
        break
      }
    }

    // Ends the delay after the failed attempts of the likes.
    _ = try await repo.mutations.list()
    await repo.retryLikes()
    // This like is sent after all others.
    let outcome = try await repo.updateLike(isLiked: true, momentID: "1", fromUserID: "0")
    if outcome != .confirmed {
      let report = await repo.report()
      Issue.record("seed \(seed): \(outcome), \(report), \(report.lanes), \(failures)")
    }
    let expectedLikes = intactLikes.map(\.like) + [MomentLike(userID: "0", momentID: "1", isLiked: true)]
    #expect(
      server.requests == expectedLikes.map { .init(isLiked: $0.isLiked, momentID: $0.momentID, userID: $0.userID) },
      "seed \(seed)")
    #expect(try await repo.mutations.list() == [], "seed \(seed)")
    #expect(await repo.pendingLikes(userID: "0").first(1) == [[:]], "seed \(seed)")
  }
}
