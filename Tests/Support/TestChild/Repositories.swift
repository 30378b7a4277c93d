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
  private typealias Notes = SyncedRepository<NotesSource>

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
    struct Verdict: Codable, Equatable {}

    let verdict: Verdict?
  }

  /// The key of the notes that another client also edits, and the key of those that no other client edits.
  private static let keys = ["shared", "own"]

  private static func notesServer(beside place: URL, _ faults: NotesServer.Faults) -> NotesServer {
    NotesServer(file: place.deletingLastPathComponent().appending(path: "server"), faults: faults)
  }

  private static func notes(_ server: NotesServer, in store: any KeyValueStore) -> Notes {
    Notes(
      NotesSource(server: server), store: store,
      configuration: RepositoryConfiguration(retryPolicy: RetryPolicy(base: .milliseconds(1), cap: .milliseconds(4))))
  }

  // MARK: - Editing

  /// Edits and concurrently fetches the notes of both keys, on a server that fails half of the requests, until the
  /// process is killed.
  static func edit(as writer: String, from first: Int, seed: UInt64, in place: URL) async throws {
    let server = notesServer(beside: place, .random(SplitMix64(seed: seed)))
    let notes = notes(server, in: open(place))
    await withTaskGroup { group in
      for key in keys {
        group.addTask { await reportVanished(from: notes.values(of: key).subscribe(), key) }
        group.addTask { await makeEdits(of: key, as: writer, numbers: first..<Int.max, by: notes) }
      }
    }
  }

  /// Makes one edit under each key, but kills the process before the given call of the store's ``FileSystem``, counted
  /// from 1.
  static func edit(
    as writer: String, number: Int, losingReplies: Bool, dyingAtCall fatal: Int, in place: URL
  ) async throws {
    let count = Atomic(0)
    let fileSystem = FileSystem { _ in
      if count.add(1, ordering: .relaxed).newValue == fatal { kill(getpid(), SIGKILL) }
      return nil
    }
    let notes = notes(
      notesServer(beside: place, losingReplies ? .firstReplies : .none), in: open(place, fileSystem))
    await withTaskGroup { group in
      for key in keys {
        group.addTask { await makeEdits(of: key, as: writer, numbers: number..<number + 1, by: notes) }
      }
    }
    // An edit whose reply was lost is sent again.
    try await notes.waitForPendingMutations()
    say("done")
  }

  /// Makes edits, each as soon as the previous one is durable, with at most three calls in flight.
  private static func makeEdits(of key: String, as writer: String, numbers: Range<Int>, by notes: Notes) async {
    let events = notes.events.subscribe()
    await withTaskGroup(of: Void.self) { group in
      var callCount = 0
      for number in numbers {
        if callCount == 3 {
          await group.next()
          callCount -= 1
        }
        let edit = NumberedEdit(writer: writer, number: number)
        // Every edit becomes durable, except a `setFirstAgain` whose note is already known to be removed.
        if edit.change == .setFirstAgain {
          guard await perform(edit, on: key, by: notes) else { continue }
        } else {
          group.addTask { _ = await perform(edit, on: key, by: notes) }
          callCount += 1
        }
        for await event in events {
          guard case .mutationEnqueued(let id, key) = event else { continue }
          say("durable \(key) \(number) \(id)")
          break
        }
        if number.isMultiple(of: 3) {
          // The server fails at random. A failure is ignored, because the next fetch follows soon.
          do throws(RepositoryError<NotesServer.Failure>) { try await notes.reload(key) } catch {}
        }
      }
    }
  }

  /// Performs an edit, and prints its result.
  ///
  /// - Returns: Whether the edit was possible on the repository's value, and so became durable.
  private static func perform(_ edit: NumberedEdit, on key: String, by notes: Notes) async -> Bool {
    let result: String
    do throws(RepositoryError<NotesServer.Failure>) {
      switch try await notes.perform(edit, on: key) {
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

  private static func reportVanished(
    from values: MulticastSubscription<NumberedNotes, Never>, _ key: String
  ) async {
    var last: Set<String> = []
    for await value in values {
      let names = value.editNames
      for name in last.subtracting(names).sorted() { say("vanished \(key) \(name)") }
      last = names
    }
  }

  // MARK: - Delivering

  /// Waits until all mutations that other processes left are delivered, and reports the resulting state.
  ///
  /// - `first KEY WRITER.NUMBER…`: the edits in the first observed value
  /// - `listed KEY WRITER.NUMBER ID STANDING`: a mutation that the repository's `mutations` still list
  /// - `records COUNT`: the number of stored records of mutations
  /// - `stored KEY agrees` and `observed KEY agrees`: the stored and the observed value equal the server's
  static func deliverEdits(in place: URL) async throws {
    let server = notesServer(beside: place, .none)
    let store = open(place)
    let (values, states) = try await deliver(notes(server, in: store), in: place)
    for key in keys {
      let expected = await server.notes(of: key)
      let stored = try await store.load(StoreKey<NumberedNotes>("notes", id: key))?.value
      report("stored", key, stored, expected)
      // The repository has been released, so these subscriptions finish.
      var state: RepositoryState<NumberedNotes, RepositoryError<NotesServer.Failure>>?
      for await next in states[key]! { state = next }
      report("observed", key, state?.value, expected)
      if state?.isPending ?? true { say("\(key) is pending") }
      var first: NumberedNotes?
      var last: Set<String> = []
      for await value in values[key]! {
        first = first ?? value
        for name in last.subtracting(value.editNames).sorted() { say("vanished \(key) \(name)") }
        last = value.editNames
      }
      say(["first", key].joined(separator: " ") + (first?.editNames.sorted() ?? []).map { " \($0)" }.joined())
    }
  }

  /// - Returns: The subscriptions with all values and states that were sent to observers.
  private static func deliver(_ notes: Notes, in place: URL) async throws -> (
    [String: MulticastSubscription<NumberedNotes, Never>],
    [String: MulticastSubscription<RepositoryState<NumberedNotes, RepositoryError<NotesServer.Failure>>, Never>]
  ) {
    let values = Dictionary(uniqueKeysWithValues: keys.map { ($0, notes.values(of: $0).subscribe()) })
    let states = Dictionary(uniqueKeysWithValues: keys.map { ($0, notes.states(of: $0).subscribe()) })
    // Waits until the stored values have been read: the first list of pending mutations, even an empty one, arrives
    // after that.
    for key in keys { for await _ in notes.pendingMutations(of: key) { break } }
    try await notes.waitForPendingMutations()
    for item in try await notes.mutations.list() {
      let standing =
        switch item.standing {
        case .conflicted: "conflicted"
        case .refused(let reason): reason == "\(NotesServer.Failure.refused)" ? "refused" : reason
        default: "\(item.standing)"
        }
      say("listed \(item.key) \(item.mutation.name) \(item.id) \(standing)")
    }
    // A repository stores the result of a mutation after reporting it, so it must exist until all results are stored.
    try await reportRecords(in: open(place))
    return (values, states)
  }

  /// Waits until the result of each mutation is stored, and reports the number of records.
  private static func reportRecords(in store: any KeyValueStore) async throws {
    let records = try await store.observe(collection: "notes.mutations", as: Record.self).stored
    var count = 0
    for entry in records {
      var record: Record? = entry.stored.value
      while let known = record, known.verdict == nil {
        await Task.yield()
        record = try await store.load(entry.key)?.value
      }
      if record != nil { count += 1 }
    }
    say("records \(count)")
  }

  private static func report(
    _ what: String, _ key: String, _ notes: NumberedNotes?, _ expected: NumberedNotes
  ) {
    // If no edit was applied, the store may be empty.
    let agrees = notes ?? NumberedNotes() == expected
    say("\(what) \(key) " + (agrees ? "agrees" : "differs: \(String(describing: notes)) for \(expected)"))
  }
}
