internal import DataStore
internal import Foundation
internal import IssueTracker
internal import Multicast
internal import MulticastTesting
internal import Repository

/// An app of the tracker without screens, of which there are several versions, in a process that a test may kill at any
/// time.
///
/// Its arguments are `COMMAND PROCESS SERVER PLACE ISSUES`, and those of the command:
/// - `queue SEED COUNT` makes a number of edits in each lane while the network is away, and ends.
/// - `read [CALL]` reads the queue, sends what this version can send, loads the issues, and ends. It kills itself before
///   a call of the file system.
/// - `edit SEED COUNT` makes a number of edits in each lane, and runs until it is killed.
/// - `deliver` sends until no edit is left, also if another version has to send some of them.
/// - `inspect` prints what the store holds; see ``inspect(_:)``.
///
/// The mark of each edit consists of the number of the process, the lane, and the number of the edit in that lane. The
/// process prints one line for each event:
/// - `queue listed ID… unreadable ID…`: the queue
/// - `begin MARK`: an edit begins
/// - `durable MARK ID`: the edit is durable
/// - `ack MARK RESULT`: `perform` has returned
/// - `rejected MARK ERROR`: `perform` has thrown, because a newer version has stored the value of the issue
/// - `failed MARK ERROR`: `perform` has thrown another error
/// - `value ISSUE VERSION`: the version of the value that is shown, or `–` if none is
/// - `quarantined …`: bytes were moved to the quarantine
/// - `undecided MARK STANDING`: an edit isn't sent any more
/// - `edited`: `edit` has made its edits
/// - `calls COUNT`: the number of calls of the file system that `read` has made
/// - `done`: the command is complete
public enum Editor<Edit: VersionedEdit> {
  /// Runs the command.
  public static func run(_ arguments: [String]) async throws {
    guard arguments.count >= 5, let process = Int(arguments[1]), let server = URL(string: arguments[2]) else {
      fatalError("no process, server, place and issues")
    }
    let rest = arguments.dropFirst(5).compactMap { UInt64($0) }
    let command = arguments[0]
    let fatalCall = command == "read" ? rest.first.map { Int($0) } : nil
    let store = EditorPlace.open(arguments[3], dyingAtCall: fatalCall)
    if command == "inspect" {
      try await inspect(store)
      return say(["done"])
    }
    let app = EditorApp<Edit>(
      process: process, issues: arguments[4].split(separator: ",").map(String.init), server: server, store: store,
      isOnline: command != "queue")
    let reports = Task { await reportQuarantine(of: store) }
    defer { reports.cancel() }
    switch command {
    case "queue":
      try await app.sayQueue()
      await app.edit(count: Int(rest[1]), random: SplitMix64(seed: rest[0]))
      try await app.sayQueue()
    case "read":
      try await app.sayQueue()
      await app.sayValues()
      await app.signIn()
      try await app.waitUntilSent()
      await app.reload()
      await app.sayValues()
      try await app.sayQueue()
      say(["calls", "\(EditorPlace.callCount)"])
    case "edit":
      try await app.sayQueue()
      await app.sayValues()
      await app.signIn()
      await app.edit(count: Int(rest[1]), random: SplitMix64(seed: rest[0]))
      say(["edited"])
      try await Task.sleep(for: .seconds(86_400))
    case "deliver":
      await app.signIn()
      try await app.waitUntilEmpty()
      await app.sayValues()
    default: fatalError("unknown command \(command)")
    }
    say(["done"])
  }

  private static func reportQuarantine(of store: any KeyValueStore) async {
    for await event in store.events {
      switch event {
      case .valueQuarantined, .journalQuarantined, .storeQuarantined: say(["quarantined", "\(event)"])
      case .newerValueLeftUntouched, .undecodableValueLeftUntouched, .migrationFailed: continue
      case .valueUnreadable, .watchingFailed: say(["failed", "\(event)"])
      }
    }
  }
}

/// The repository of an editor.
struct EditorApp<Edit: VersionedEdit>: Sendable {
  let process: Int
  let issues: [String]
  let client: TrackerClient
  let repository: SyncedRepository<EditorSource<Edit>>

  init(process: Int, issues: [String], server: URL, store: any KeyValueStore, isOnline: Bool) {
    (self.process, self.issues) = (process, issues)
    client = TrackerClient(server: server, timeout: .seconds(2))
    // A process is killed again and again while it sends an edit, which is no reason to give the edit up.
    let retryPolicy = RetryPolicy(
      maximumInterruptedAttempts: nil, base: .milliseconds(5), cap: .milliseconds(50))
    repository = SyncedRepository(
      EditorSource(client: client), store: store,
      configuration: RepositoryConfiguration(
        freshness: Freshness(timeToLive: .zero), retryPolicy: retryPolicy,
        network: ManualNetworkMonitor(isOnline ? .online : .offline),
        leadership: StoreLeadership(retryInterval: .milliseconds(20))))
  }

  /// Signs in, however often that fails.
  func signIn() async {
    var isSignedIn = false
    while !isSignedIn {
      do {
        try await client.signIn(as: "ann")
        isSignedIn = true
      } catch {}
    }
    await repository.credentialsChanged(userID: nil)
  }

  // MARK: - Printing

  func sayQueue() async throws {
    let unreadable = try await repository.mutations.unreadable()
    let listed = try await repository.mutations.list()
    for item in listed {
      switch item.standing {
      case .waiting, .inFlight, .needsSignIn: continue
      case .conflicted, .refused: say(["undecided", item.mutation.change.mark, "\(item.standing)"])
      }
    }
    say(["queue", "listed"] + listed.map(\.id.rawValue) + ["unreadable"] + unreadable.map(\.id.rawValue))
  }

  func sayValues() async {
    for issue in issues { await sayValue(of: issue) }
  }

  private func sayValue(of issue: String) async {
    let state = await repository.state(of: issue)
    // The version is an ETag.
    let version = state.value?.detail.version?.filter(\.isNumber)
    say(["value", issue, version ?? "–"])
  }

  // MARK: - Editing

  /// Makes edits in all lanes at the same time.
  ///
  /// - Parameters:
  ///   - count: The number of edits in each lane.
  ///   - random: Selects the issues and the kinds of the edits.
  func edit(count: Int, random: SplitMix64) async {
    var random = random
    await withTaskGroup { group in
      for (lane, issues) in Dictionary(grouping: issues, by: EditorSource<Edit>.lane).sorted(by: { $0.key < $1.key }) {
        let random = SplitMix64(seed: random.next())
        group.addTask { await edit(issues, lane, count: count, random: random) }
      }
    }
  }

  private func edit(_ issues: [String], _ lane: String, count: Int, random: SplitMix64) async {
    var random = random
    var known: Set<MutationID> = []
    for number in 0..<count {
      guard let issue = issues.randomElement(using: &random) else { return }
      let mark = "\(process).\(lane).\(number)"
      let edit = Edit(kind: .random(in: 0..<100, using: &random), mark: mark)
      if let id = await perform(edit, mark, on: issue, lane, known) { known.insert(id) }
    }
  }

  /// Makes an edit, and returns its id if it has become durable.
  private func perform(
    _ edit: Edit, _ mark: String, on issue: String, _ lane: String, _ known: Set<MutationID>
  ) async -> MutationID? {
    let events = repository.events.subscribe()
    say(["begin", mark])
    async let durable = sayDurable(mark, lane, known, events)
    let result = await perform(edit, mark, on: issue)
    if result[0] != "ack" {
      say(result)
      // Leaving the scope cancels the other task.
      return nil
    }
    let id = await durable
    say(result)
    await sayValue(of: issue)
    return id
  }

  /// Waits until an edit is durable, and returns its id.
  ///
  /// - Parameter known: The ids of the earlier edits of the lane, whose events may be the first ones.
  private func sayDurable(
    _ mark: String, _ lane: String, _ known: Set<MutationID>,
    _ events: MulticastSubscription<RepositoryEvent, Never>
  ) async -> MutationID? {
    for await case .mutationEnqueued(let id, lane) in events where !known.contains(id) {
      say(["durable", mark, id.rawValue])
      return id
    }
    return nil
  }

  private func perform(_ edit: Edit, _ mark: String, on issue: String) async -> [String] {
    do throws(RepositoryError<TrackerError>) {
      switch try await repository.perform(edit, on: issue) {
      case .confirmed: return ["ack", mark, "confirmed"]
      case .queued: return ["ack", mark, "queued"]
      case .conflicted: return ["ack", mark, "conflicted"]
      }
    } catch {
      return [error.isNewerValue ? "rejected" : "failed", mark, "\(error)"]
    }
  }

  // MARK: - Sending

  /// Loads all issues, of which this version may not be able to store some.
  func reload() async {
    for issue in issues {
      do throws(RepositoryError<TrackerError>) {
        try await repository.reload(issue)
      } catch {
        say([error.isNewerValue ? "unreadable" : "failed", issue, "\(error)"])
      }
    }
  }

  /// Waits until all edits are sent that don't follow one that this version can't send.
  func waitUntilSent() async throws {
    while await repository.report().lanes.contains(where: { $0.status != .held }) {
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  func waitUntilEmpty() async throws {
    while true {
      let unreadable = try await repository.mutations.unreadable()
      let listed = try await repository.mutations.list()
      if unreadable.isEmpty, listed.isEmpty { return }
      try await Task.sleep(for: .milliseconds(10))
    }
  }
}

extension RepositoryError {
  /// Whether a newer version has stored the value.
  fileprivate var isNewerValue: Bool {
    if case .store(.newerFormat) = self { true } else { false }
  }
}
