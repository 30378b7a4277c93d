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

/// Replies of the server whose text is invalid, or whose timeline can't be read.
@Suite(.timeLimit(.minutes(15))) struct MomentsRepoUnreadableReplyTests {
  private static func makeRepo(_ transport: JSONTransport) -> MomentsRepo {
    MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()),
      getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: transport.apiSession),
      updateMomentLikeSession: UpdateMomentLikeSession(apiSession: transport.apiSession), clock: ManualClock())
  }

  private static func body(_ operation: String, _ timeline: Data) -> Data {
    let field = operation == "updateMomentLike" ? operation : "getMomentsDetailsByUserID"
    return Data(#"{"data":{"\#(field)":"#.utf8) + timeline + Data("}}".utf8)
  }

  @Test(
    arguments: [
      (Array(#"cut \ud83d"#.utf8), "cut \u{FFFD}"), (Array(#"\ude00"#.utf8), "\u{FFFD}"),
      ([0x63, 0x61, 0x66, 0xE9], "caf\u{FFFD}"), (Array("a\tb".utf8), "a\tb"), ([0x61, 0xC3], "a\u{FFFD}"),
      ([0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80], String(repeating: "\u{FFFD}", count: 6)),
    ] as [([UInt8], String)])
  func `A timeline and a like whose text is invalid are read`(bytes: [UInt8], title: String) async throws {
    let transport = JSONTransport { operation in
      let timeline = JSONTransport.timeline(title: "\"@\"", isLiked: operation == "updateMomentLike")
      let parts = timeline.split(separator: "@", maxSplits: 1)
      return Self.body(operation, Data(parts[0].utf8) + Data(bytes) + Data(parts[1].utf8))
    }
    let repo = Self.makeRepo(transport)
    try await repo.getMoments(userID: "0")
    #expect(await repo.momentsDetails(userID: "0").first(1).map(\.moments[0].title) == [title])
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .confirmed)
    #expect(await repo.momentsDetails(userID: "0").first(1).map(\.moments[0].isLiked) == [true])
    #expect(transport.operations.filter { $0 == "updateMomentLike" }.count == 1)
  }

  @Test func `A like whose timeline can't be read is made once, and a later fetch brings the timeline`() async throws {
    let isReadable = Lock(false)
    let likedIDs = Lock<[String]>([])
    let transport = JSONTransport { operation in
      if operation == "updateMomentLike" { likedIDs.withLock { $0.append("\($0.count)") } }
      let timeline = JSONTransport.timeline(title: "null", isLiked: true)
      return Self.body(
        operation,
        Data(
          isReadable.withLock { $0 } ? timeline.utf8 : timeline.replacing(#""photos":[]"#, with: #""photos":7"#).utf8))
    }
    let repo = Self.makeRepo(transport)
    let reports = repo.incompleteReplies.subscribe()
    // The timeline that the repository fetches after each like can't be read either.
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    let requests = await reports.first(2)
    let like = MomentLike(userID: "0", momentID: "0", isLiked: true)
    #expect(requests.map(\.request) == [.like(like), .like(like)])
    #expect(requests.allSatisfy { $0.unreadableReason?.contains("photos") == true })
    #expect(requests.first?.description.hasPrefix("The timeline after the like of 0 can't be read: ") == true)
    #expect(try await repo.mutations.list().count == 2)

    isReadable.withLock { $0 = true }
    try await repo.getMoments(userID: "0")
    for await likes in repo.mutations.changes where likes.isEmpty { break }
    #expect(await repo.momentsDetails(userID: "0").first(1).map(\.moments[0].isLiked) == [true])
    #expect(transport.operations.filter { $0 == "updateMomentLike" }.count == 2)
  }

  @Test(arguments: [#""soon""#, "7", "[]", #"{"moments":{}}"#])
  func `A like is confirmed by a fetched timeline if its own reply has another shape`(value: String) async throws {
    let transport = JSONTransport { operation in
      operation == "updateMomentLike"
        ? Self.body(operation, Data(value.utf8))
        : Self.body(operation, Data(JSONTransport.timeline(title: "null", isLiked: false).utf8))
    }
    let repo = Self.makeRepo(transport)
    try await repo.getMoments(userID: "0")
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .confirmed)
    // The server's timeline counts, although it doesn't show the like.
    #expect(await repo.momentsDetails(userID: "0").first(1).map(\.moments[0].isLiked) == [false])
    #expect(transport.operations.filter { $0 == "updateMomentLike" }.count == 1)
  }

  /// Delays always as long as the policy allows.
  private struct LongestDelays: RandomNumberGenerator {
    mutating func next() -> UInt64 { .max }
  }

  private static let otherAnswers: [String] = [
    "<html>Sign in</html>", #"{"data":{"updateMomentLike":{"userDe"#, #"{"data":{"updateMomentLike":null}}"#,
    #"{"data":{}}"#, #"{"data":null}"#, "", "[]",
  ]

  @Test(arguments: otherAnswers)
  func `After an answer that isn't the server's, a like is sent again after delays that grow, and the app sees why`(
    answer: String
  ) async throws {
    let isAnswering = Lock(false)
    let transport = JSONTransport { operation in
      operation == "updateMomentLike" && !isAnswering.withLock { $0 }
        ? Data(answer.utf8)
        : Self.body(
          operation,
          Data(JSONTransport.timeline(title: "null", isLiked: isAnswering.withLock { $0 }).utf8))
    }
    let clock = ManualClock()
    let repo = MomentsRepo(
      persistentDataStore: PersistentDataStore(InMemoryStore()),
      getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: transport.apiSession),
      updateMomentLikeSession: UpdateMomentLikeSession(apiSession: transport.apiSession), clock: clock,
      random: LongestDelays())
    let events = repo.events.subscribe()
    try await repo.getMoments(userID: "0")
    #expect(try await repo.updateLike(isLiked: true, momentID: "0", fromUserID: "0") == .queued)
    // Fetches succeed meanwhile. Of two delays in a row, they end only the first.
    for _ in 0..<20 { try await repo.getMoments(userID: "0") }
    var delays: [Duration] = []
    for await event in events {
      guard case .retryScheduled(_, let attempt, let delay, let reason) = event else { continue }
      #expect(attempt == delays.count + 1)
      #expect(!reason.isEmpty)
      delays.append(delay)
      if delays.count == 4 { break }
      switch delays.count {
      case 1: break
      case 2:
        await clock.sleepers()
        clock.advance(by: delay)
      default: for _ in 0..<20 { try await repo.getMoments(userID: "0") }
      }
    }
    #expect(delays == [.seconds(1), .seconds(2), .seconds(4), .seconds(8)])
    for _ in 0..<20 { try await repo.getMoments(userID: "0") }
    #expect(transport.operations.filter { $0 == "updateMomentLike" }.count == 4)

    isAnswering.withLock { $0 = true }
    await repo.retryLikes()
    await repo.waitUntilSent()
    #expect(await repo.pendingLikes(userID: "0").first(1) == [[:]])
  }
}
