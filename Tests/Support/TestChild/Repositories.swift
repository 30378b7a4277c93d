internal import DataStore
internal import Foundation
internal import Multicast
internal import MulticastTesting
internal import Repository
internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Commands that edit notes in a process that may be killed at any time.
///
/// The process prints `durable KEY NUMBER ID` when an edit is durable, and `ended KEY NUMBER RESULT` when `perform` has
/// returned or thrown. It prints `vanished KEY WRITER.NUMBER` if an observer saw an edit and then a value without it.
extension TestChild {
  private typealias NotesRepository = SyncedRepository<NotesSource>

  private struct NotesSource: MutableSource {
    let server: NotesServer
    let name = "notes"

    static var empty: NumberedNotes? { NumberedNotes() }

    func fetch(_ key: String) async throws(NotesServer.Failure) -> NumberedNotes {
      try await server.fetch(key)
    }

    func send(
      _ mutation: NumberedEdit, to key: String, id: MutationID
    ) async throws(NotesServer.Failure) -> MutationReply<NumberedNotes> {
      try await server.take(mutation, key, id)
    }

    func disposition(of failure: NotesServer.Failure) -> FailureDisposition {
      switch failure {
      case .offline: .retryLater()
      case .brokenConnection: .unknownOutcome
      case .refused: .refused
      case .conflict: .conflict
      }
    }
  }

  /// The part of a mutation's record that shows whether the mutation will still be sent.
  private struct Record: Codable, Equatable {
    /// The reason why the mutation is no longer sent, of which only the presence matters here.
    struct Verdict: Codable, Equatable {}

    let verdict: Verdict?
  }

  /// The key of the notes that another client also edits, and the key of those that no other client edits.
  private static let keys = ["shared", "own"]

  private static func makeServer(beside place: URL, faults: NotesServer.Faults) -> NotesServer {
    NotesServer(file: place.deletingLastPathComponent().appending(path: "server"), faults: faults)
  }

  private static func makeRepository(of server: NotesServer, in store: any KeyValueStore) -> NotesRepository {
    NotesRepository(
      NotesSource(server: server), store: store,
      configuration: RepositoryConfiguration(retryPolicy: RetryPolicy(base: .milliseconds(1), cap: .milliseconds(4))))
  }

  // MARK: - Editing

  /// The number of edits that a process makes under each key.
  ///
  /// More than any test waits for. Without a limit, a process that isn't killed soon on a busy machine would make so
  /// many that the test takes minutes to check them.
  private static let maximumEditCount = 64

  /// Edits and concurrently fetches the notes of both keys, on a server that fails half of the requests, until the
  /// process is killed.
  static func edit(as writer: String, from first: Int, seed: UInt64, in place: URL) async throws {
    let server = makeServer(beside: place, faults: .random(SplitMix64(seed: seed)))
    let repository = makeRepository(of: server, in: open(place))
    await withTaskGroup { group in
      for key in keys {
        group.addTask { await reportVanishedEdits(in: repository.values(of: key).subscribe(), of: key) }
        group.addTask {
          await makeEdits(of: key, as: writer, numbers: first..<first + maximumEditCount, by: repository)
        }
      }
    }
  }

  /// Makes one edit under each key, but kills the process before the given call of the store's ``FileSystem``, counted
  /// from 1.
  ///
  /// Prints `done` when both edits are completed, unless the process is killed before that.
  static func edit(
    as writer: String, number: Int, losesFirstReplies: Bool, dyingAtCall fatalCall: Int, in place: URL
  ) async throws {
    let callCount = Atomic(0)
    let fileSystem = FileSystem { _ in
      if callCount.add(1, ordering: .relaxed).newValue == fatalCall { kill(getpid(), SIGKILL) }
      return nil
    }
    let server = makeServer(beside: place, faults: losesFirstReplies ? .lostFirstReplies : .none)
    let repository = makeRepository(of: server, in: open(place, fileSystem))
    await withTaskGroup { group in
      for key in keys {
        group.addTask { await makeEdits(of: key, as: writer, numbers: number..<number + 1, by: repository) }
      }
    }
    // Waits, because an edit whose reply was lost is sent again.
    try await repository.waitForPendingMutations()
    say("done")
  }

  /// Makes edits, each after the previous one is durable, with at most three calls in flight.
  private static func makeEdits(
    of key: String, as writer: String, numbers: Range<Int>, by repository: NotesRepository
  ) async {
    let events = repository.events.subscribe()
    await withTaskGroup(of: Void.self) { group in
      var concurrentCallCount = 0
      for number in numbers {
        if concurrentCallCount == 3 {
          await group.next()
          concurrentCallCount -= 1
        }
        let edit = NumberedEdit(writer: writer, number: number)
        // Every edit becomes durable, except a `setFirstAgain` whose note is already known to be removed. Only the
        // result of the call shows whether that is the case.
        if edit.change == .setFirstAgain {
          let becameDurable = await perform(edit, on: key, by: repository)
          guard becameDurable else { continue }
        } else {
          group.addTask { _ = await perform(edit, on: key, by: repository) }
          concurrentCallCount += 1
        }
        for await event in events {
          guard case .mutationEnqueued(let id, key) = event else { continue }
          say("durable \(key) \(number) \(id)")
          break
        }
        if number.isMultiple(of: 3) {
          // The server may fail at random. A failure is ignored, because no edit depends on the fetch.
          do throws(RepositoryError<NotesServer.Failure>) { try await repository.reload(key) } catch {}
        }
      }
    }
  }

  /// Performs an edit, and prints its result.
  ///
  /// - Returns: Whether the edit was possible on the repository's value, and so became durable.
  private static func perform(_ edit: NumberedEdit, on key: String, by repository: NotesRepository) async -> Bool {
    let result: String
    do throws(RepositoryError<NotesServer.Failure>) {
      switch try await repository.perform(edit, on: key) {
      case .confirmed: result = "confirmed"
      case .queued: result = "queued"
      case .conflicted: result = "conflicted"
      }
    } catch {
      switch error {
      case .server(.refused): result = "refused"
      case .conflict: result = "impossible"
      default: fail("\(error)")
      }
    }
    say("ended \(key) \(edit.number) \(result)")
    return result != "impossible"
  }

  private static func reportVanishedEdits(
    in values: MulticastSubscription<NumberedNotes, Never>, of key: String
  ) async {
    var previousNames: Set<String> = []
    for await value in values {
      let names = value.editNames
      for name in previousNames.subtracting(names).sorted() { say("vanished \(key) \(name)") }
      previousNames = names
    }
  }

  // MARK: - Delivering

  /// Waits until all mutations that other processes left are delivered, and reports the resulting state.
  ///
  /// - `first KEY WRITER.NUMBER…`: the edits in the first observed value
  /// - `listed KEY WRITER.NUMBER ID STANDING`: a mutation that the repository's `mutations` still list
  /// - `records COUNT`: the number of stored records of mutations
  /// - `stored KEY agrees` and `observed KEY agrees`: the stored and the observed value equal the server's
  /// - `vanished KEY WRITER.NUMBER`: an edit that an observed value has and the next one lacks
  ///
  /// Any other line reports a fault.
  static func deliverEdits(in place: URL) async throws {
    let server = makeServer(beside: place, faults: .none)
    let store = open(place)
    let (values, states) = try await deliverAll(by: makeRepository(of: server, in: store), in: place)
    for key in keys {
      let expected = await server.notes(of: key)
      let stored = try await store.load(StoreKey<NumberedNotes>("notes", id: key))?.value
      reportAgreement(of: "stored", key, stored, expected)
      // The repository has been released, so these subscriptions finish.
      var lastState: RepositoryState<NumberedNotes, RepositoryError<NotesServer.Failure>>?
      for await state in states[key]! { lastState = state }
      reportAgreement(of: "observed", key, lastState?.value, expected)
      if lastState?.isPending ?? true { say("\(key) is pending") }
      var firstValue: NumberedNotes?
      var previousNames: Set<String> = []
      for await value in values[key]! {
        firstValue = firstValue ?? value
        for name in previousNames.subtracting(value.editNames).sorted() { say("vanished \(key) \(name)") }
        previousNames = value.editNames
      }
      say(["first", key].joined(separator: " ") + (firstValue?.editNames.sorted() ?? []).map { " \($0)" }.joined())
    }
  }

  /// Waits until all mutations are delivered, and reports those that are still listed, and the number of records.
  ///
  /// - Returns: The subscriptions with all values and states that were sent to observers, by key.
  private static func deliverAll(by repository: NotesRepository, in place: URL) async throws -> (
    [String: MulticastSubscription<NumberedNotes, Never>],
    [String: MulticastSubscription<RepositoryState<NumberedNotes, RepositoryError<NotesServer.Failure>>, Never>]
  ) {
    let values = Dictionary(uniqueKeysWithValues: keys.map { ($0, repository.values(of: $0).subscribe()) })
    let states = Dictionary(uniqueKeysWithValues: keys.map { ($0, repository.states(of: $0).subscribe()) })
    // Waits until the stored values have been read: the first list of pending mutations, even an empty one, arrives
    // after that.
    for key in keys { for await _ in repository.pendingMutations(of: key) { break } }
    try await repository.waitForPendingMutations()
    for item in try await repository.mutations.list() {
      let standing =
        switch item.standing {
        case .conflicted: "conflicted"
        case .refused(let reason): reason == "\(NotesServer.Failure.refused)" ? "refused" : reason
        default: "\(item.standing)"
        }
      say("listed \(item.key) \(item.mutation.name) \(item.id) \(standing)")
    }
    // A repository stores the result of a mutation after reporting it, so this repository must exist until all results
    // are stored.
    try await reportRecords(in: open(place))
    return (values, states)
  }

  /// Waits until the result of each mutation is stored, and reports the number of records that remain.
  ///
  /// Storing the result either deletes the record or gives it a verdict.
  private static func reportRecords(in store: any KeyValueStore) async throws {
    let records = try await store.observe(collection: "notes.mutations", as: Record.self).stored
    var count = 0
    for entry in records {
      var record: Record? = entry.stored.value
      while let current = record, current.verdict == nil {
        await Task.yield()
        record = try await store.load(entry.key)?.value
      }
      if record != nil { count += 1 }
    }
    say("records \(count)")
  }

  private static func reportAgreement(
    of kind: String, _ key: String, _ notes: NumberedNotes?, _ expected: NumberedNotes
  ) {
    // If no edit was applied, the store may be empty.
    let agrees = notes ?? NumberedNotes() == expected
    say("\(kind) \(key) " + (agrees ? "agrees" : "differs: \(String(describing: notes)) for \(expected)"))
  }
}
