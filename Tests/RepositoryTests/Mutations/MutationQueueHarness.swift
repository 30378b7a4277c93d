import DataStore
import Foundation
import Multicast
import MulticastTesting
import Repository

/// What the tests send.
struct Like: Codable, Hashable, Sendable {
  let number: Int
}

struct ServerFailure: Error, Hashable, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// Always gives the highest number, so that a random wait is the longest.
struct HighestNumbers: RandomNumberGenerator {
  func next() -> UInt64 { .max }
}

/// A server that answers as a test says, and knows what it was asked.
final class LikeServer: Sendable {
  typealias Outcome = MutationOutcome<String, ServerFailure>

  struct Attempt: Hashable, Sendable {
    let number: Int
    let key: String
  }

  private struct Log {
    var attempts: [Attempt] = []
    var counts: [Int: Int] = [:]
  }

  private let log = Lock(Log())
  private let count = CurrentValueRelay(0)
  private let answer: @Sendable (Like, _ attempt: Int) async -> Outcome

  /// Creates a server whose answer may depend on how often it was asked for the same.
  init(
    answer: @escaping @Sendable (Like, _ attempt: Int) async -> Outcome = { like, _ in .delivered("\(like.number)") }
  ) {
    self.answer = answer
  }

  var attempts: [Attempt] { log.withLock { $0.attempts } }

  /// Waits until the server was asked so often.
  func attempts(_ count: Int) async { await self.count.stream.reaches { $0 >= count } }

  func send(_ like: Like, key: String) async -> Outcome {
    let attempt = log.withLock { log in
      log.attempts.append(Attempt(number: like.number, key: key))
      log.counts[like.number, default: 0] += 1
      return log.counts[like.number]!
    }
    count.update { $0 += 1 }
    return await answer(like, attempt)
  }
}

/// A queue over a storage that outlives it, and a server.
struct MutationQueueHarness: Sendable {
  typealias Queue = MutationQueue<Like, String, ServerFailure>

  let storage: InMemoryStorage
  let server: LikeServer
  let clock = ManualClock()
  let events = RepositoryEvents(replay: 1000)
  let queue: Queue

  /// Opens a queue; on the storage of another harness, it is the same queue after a relaunch.
  init(
    storage: InMemoryStorage = InMemoryStorage(), store: (any KeyValueStore)? = nil, server: LikeServer = LikeServer(),
    retryPolicy: RetryPolicy = RetryPolicy(base: .seconds(1), multiplier: 2, cap: .seconds(60)),
    maximumConcurrentSends: Int = 4
  ) {
    self.storage = storage
    self.server = server
    queue = Queue(
      store: store ?? InMemoryStore(storage: storage), name: "likes", retryPolicy: retryPolicy,
      maximumConcurrentSends: maximumConcurrentSends, clock: clock, now: { Self.date }, random: HighestNumbers(),
      events: events
    ) { like, key in await server.send(like, key: key) }
  }

  static let date = Date(timeIntervalSinceReferenceDate: 800_000_000)

  /// Runs the queue as long as `body` runs.
  func running<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
    let queue = queue
    let run = Task { try await queue.run() }
    defer { run.cancel() }
    let result = try await body()
    run.cancel()
    try await run.value
    return result
  }

  @discardableResult
  func enqueue(_ number: Int, key: String = "a") async throws(MutationQueueError) -> Queue.Ticket {
    try await queue.enqueue(Like(number: number), orderingKey: key, id: Self.id(number))
  }

  static func id(_ number: Int) -> MutationID { MutationID(rawValue: "key-\(number)") }

  /// What is in the queue: number and state.
  func entries() async throws -> [String] {
    try await queue.entries().map { "\($0.mutation.number) \($0.state)" }
  }

  /// Waits until nothing is left to send.
  func drained() async {
    await queue.snapshots.reaches { $0.isLoaded && $0.waitingCount == 0 }
  }
}
