import DataStore
import Foundation
import Multicast
import Repository
import RepositoryTesting
import Testing

@Suite(.timeLimit(.minutes(15))) struct RepositoryConformanceTests {
  /// A limit that is longer than any check takes while a thousand other tests run on two threads.
  private static let timeLimit = Duration.seconds(600)

  @Test(arguments: RepositoryConformance<NotesSource>.checks)
  func `A source that replies with the whole value keeps the laws`(
    check: RepositoryConformance<NotesSource>.Check
  ) async throws {
    try await check.run(on: Self.makeNotesHarness { NotesSource($0, $1) })
  }

  @Test(arguments: RepositoryConformance<PagedConformanceSource>.checks)
  func `A paged source that replies without a value keeps the laws`(
    check: RepositoryConformance<PagedConformanceSource>.Check
  ) async throws {
    let harness = RepositoryHarness<PagedConformanceSource>(
      key: "a", initial: Paged([Mark(id: 2), Mark(id: 1)]), mutations: (3...7).map { MarkChange(mark: $0) },
      timeLimit: Self.timeLimit
    ) { server, network in
      PagedConformanceSource(server: server, network: network)
    } makePlace: {
      let storage = InMemoryStorage()
      return { InMemoryStore(storage: storage) }
    }
    try await check.run(on: harness)
  }

  private typealias UserSource = ScriptedSource<UserKey, Notes, NotesMutation, NotesFailure>

  @Test(arguments: RepositoryConformance<UserSource>.checks)
  private func `A source whose values belong to users keeps the laws`(
    check: RepositoryConformance<UserSource>.Check
  ) async throws {
    let harness = RepositoryHarness<UserSource>(
      key: UserKey("jake", "a"), initial: Notes("old"), mutations: [.add("1"), .add("2"), .add("3")],
      timeLimit: Self.timeLimit
    ) { server, network in
      UserSource(
        "notes",
        fetch: { (key) async throws(NotesFailure) in
          try await Self.exchange("fetch", network) { server.value(of: key) }
        },
        send: { (mutation, key, id) async throws(NotesFailure) in
          let reply = try await Self.exchange("send", network) {
            Result { () throws(NotesFailure) in try server.take(mutation, key, id) }
          }
          return .value(try reply.get())
        }, disposition: { $0.disposition })
    } makePlace: {
      let storage = InMemoryStorage()
      return { InMemoryStore(storage: storage) }
    }
    try await check.run(on: harness)
  }

  private static func exchange<Reply: Sendable>(
    _ label: String, _ network: SimulatedNetwork, _ reply: @escaping @Sendable () -> Reply
  ) async throws(NotesFailure) -> Reply {
    do throws(SimulatedNetwork.Failure) {
      return try await network.exchange(label, reply)
    } catch {
      throw error.asNotesFailure
    }
  }

  /// A fault of a source or a store.
  ///
  /// The raw value is the name of the law that the fault breaks.
  enum Fault: String, CaseIterable, Sendable {
    case newIDForEachAttempt = "L6 Once"
    // The source sends no mutation, so the server applies none. The check of this law fails in that case too.
    case confirmsWithoutSending = "L5 FIFO"
    case storeForgets = "L7 Durable"
    case storeSplitsCommits = "L8 Atomic"
  }

  @Test(arguments: Fault.allCases)
  func `A source or a store that breaks a law fails the check of that law`(fault: Fault) async throws {
    let harness = Self.makeNotesHarness(timeLimit: .seconds(3)) { server, network in
      switch fault {
      case .newIDForEachAttempt: NotesSource(server, network) { _ in MutationID() }
      case .confirmsWithoutSending:
        NotesSource(
          fetch: { server.value(of: $0) },
          send: { (mutation, key, _) throws(NotesFailure) in
            if !network.isReachable { throw .offline }
            return .done
          })
      default: NotesSource(server, network)
      }
    } makePlace: {
      let storage = InMemoryStorage()
      switch fault {
      case .storeForgets: return { InMemoryStore() }
      case .storeSplitsCommits: return { SplittingStore(base: InMemoryStore(storage: storage)) }
      default: return { InMemoryStore(storage: storage) }
      }
    }
    let check = try #require(RepositoryConformance<NotesSource>.checks.first { $0.law == fault.rawValue })
    let failure = await #expect(throws: RepositoryConformance<NotesSource>.Failure.self) {
      try await check.run(on: harness)
    }
    #expect(failure?.description.hasPrefix("Broken law \(fault.rawValue): ") == true)
  }

  private static func makeNotesHarness(
    timeLimit: Duration = timeLimit,
    makeSource: @escaping @Sendable (NotesServer, SimulatedNetwork) -> NotesSource,
    makePlace: @escaping @Sendable () async throws -> RepositoryHarness<NotesSource>.Place = {
      let storage = InMemoryStorage()
      return { InMemoryStore(storage: storage) }
    }
  ) -> RepositoryHarness<NotesSource> {
    RepositoryHarness(
      key: "a", initial: Notes("old", "gone"),
      mutations: [.add("1"), .replace("old", with: "new"), .remove("gone"), .add("2"), .add("3")],
      timeLimit: timeLimit, makeSource: makeSource, makePlace: makePlace)
  }
}

extension ScriptedSource where Key == String, Value == Notes, Mutation == NotesMutation, Failure == NotesFailure {
  /// Creates a source whose server replies with the whole value over a simulated network.
  ///
  /// - Parameter idempotencyKey: A closure that takes a mutation's id, and returns the id to send instead of it.
  init(
    _ server: NotesServer, _ network: SimulatedNetwork,
    idempotencyKey: @escaping @Sendable (MutationID) -> MutationID = { $0 }
  ) {
    self.init(
      fetch: { (key) async throws(NotesFailure) in
        do throws(SimulatedNetwork.Failure) {
          return try await network.exchange("fetch") { server.value(of: key) }
        } catch {
          throw error.asNotesFailure
        }
      },
      send: { (mutation, key, id) async throws(NotesFailure) in
        let sentID = idempotencyKey(id)
        let reply: Result<Notes, NotesFailure>
        do throws(SimulatedNetwork.Failure) {
          reply = try await network.exchange("send") { () -> Result<Notes, NotesFailure> in
            Result { () throws(NotesFailure) in try server.take(mutation, key, sentID) }
          }
        } catch {
          throw error.asNotesFailure
        }
        return .value(try reply.get())
      })
  }
}

extension SimulatedNetwork.Failure {
  fileprivate var asNotesFailure: NotesFailure {
    switch self {
    case .unreachable: .offline
    case .noReply: .brokenConnection
    }
  }

  fileprivate var asMarksFailure: MarksFailure {
    switch self {
    case .unreachable: .offline
    case .noReply: .noReply
    }
  }
}

/// A source of paged marks, whose server acknowledges changes without a value.
struct PagedConformanceSource: PagedSource, MutableSource {
  static var empty: Paged<Mark>? { Paged() }

  let name = "marks"
  let server: MarksServer
  let network: SimulatedNetwork

  func fetch(_ key: String, after cursor: String?, limit: Int) async throws(MarksFailure) -> Paged<Mark> {
    do throws(SimulatedNetwork.Failure) {
      return try await network.exchange("fetch") { [server] in server.page(of: key, after: cursor, limit: limit) }
    } catch {
      throw error.asMarksFailure
    }
  }

  func send(
    _ mutation: MarkChange, to key: String, id: MutationID
  ) async throws(MarksFailure) -> MutationReply<Paged<Mark>> {
    let isApplied: Bool
    do throws(SimulatedNetwork.Failure) {
      isApplied = try await network.exchange("send") { [server] in
        (try? server.apply(mutation, to: key, id: id)) != nil
      }
    } catch {
      throw error.asMarksFailure
    }
    if !isApplied { throw .conflict }
    return .done
  }

  func disposition(of failure: MarksFailure) -> FailureDisposition { failure.disposition }
}

/// A store whose commit of notes and of their mutations isn't atomic.
private final class SplittingStore: ForwardingStore {
  let base: InMemoryStore

  init(base: InMemoryStore) { self.base = base }

  /// Commits a batch, unless it contains both notes and mutations.
  ///
  /// If it contains both, removes all mutations, then throws an error before anything else is stored.
  func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    let mutationKeys = batch.keys.filter { $0.collection == "notes.mutations" }
    guard batch.keys.contains(where: { $0.collection == "notes" }), !mutationKeys.isEmpty else {
      return try await base.commit(batch)
    }
    try await base.removeAll(in: "notes.mutations")
    // Code 5 is `EIO`, an input/output error.
    throw .writeFailed(SystemError(code: 5, operation: "testing", path: "memory"))
  }

  /// Returns `unsupported`, so that no repository leads, and each one sends mutations by itself.
  func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult { .unsupported }
}
