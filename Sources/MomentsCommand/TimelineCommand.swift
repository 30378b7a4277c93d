internal import DataStore
internal import Foundation
internal import GraphQLClient
internal import Moments
internal import Multicast
internal import Repository
internal import TerminalUI

/// `moments`: shows the stored timeline, then the fresh one, then likes a moment while three observers of one
/// repository watch: a list, a detail, and a counter of likes.
struct TimelineCommand {
  let options: TimelineOptions
  let console: Console
  /// Where to show it live; nil to print it line by line.
  let terminal: (any TerminalType)?
  let now: @Sendable () -> Date

  init(
    options: TimelineOptions, console: Console, terminal: (any TerminalType)? = nil,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.options = options
    // Names, titles and errors are in the words of a server.
    self.console = console.printable
    self.terminal = terminal
    self.now = now
  }

  /// Why the command ends early.
  private struct Failure: Error {
    let status: CommandStatus
    let message: String

    init(_ error: StoreError) {
      status = .inputOutput
      message = error.description
    }

    init(_ error: SignOutError) {
      status =
        switch error {
        case .unsent: .unavailable
        case .store: .inputOutput
        case .cancelled: .interrupted
        }
      message =
        if case .unsent(let count) = error {
          "\(count) likes can't be sent now. Add --discard to sign out without them."
        } else {
          error.description
        }
    }

    init(_ error: MomentsRepoError) {
      if case .store = error { status = .inputOutput } else { status = .unavailable }
      message = error.description
    }
  }

  func run() async -> CommandStatus {
    do throws(Failure) {
      if let terminal { return try await showLive(on: terminal) }
      try await show()
      return .success
    } catch {
      console.error("moments: \(error.message)")
      return error.status
    }
  }

  /// Prints what is stored and what waits to be sent, beside any process that shows it.
  func report() async -> CommandStatus {
    do throws(Failure) {
      let store = makeStore()
      let stored = try await storedTimeline(in: store)
      let repo = try await makeRepo(store: store, leadership: NeverLeading()).repo
      if stored != nil {
        // A report is about the keys in use.
        for await _ in repo.momentsDetails(userID: options.userID) { break }
      }
      for line in await repo.report().description.split(separator: "\n") { console.print(String(line)) }
      return .success
    } catch {
      console.error("moments: \(error.message)")
      return error.status
    }
  }

  /// Erases what is kept of the user.
  ///
  /// - Parameters:
  ///   - discardsLikes: Whether likes that can't be sent are lost. Otherwise they keep the user from being signed out.
  ///   - sendingTime: How long the likes that wait have to be sent.
  func signOut(discardsLikes: Bool, sendingTime: Duration = .seconds(5)) async -> CommandStatus {
    do throws(Failure) {
      let repo = try await makeRepo(store: makeStore()).repo
      do throws(SignOutError) {
        try await repo.signOut(
          userID: options.userID, unsent: discardsLikes ? .discard : .send(within: sendingTime))
      } catch {
        throw Failure(error)
      }
      console.print("User \(options.userID) is signed out. Nothing of the user is kept.")
      return .success
    } catch {
      console.error("moments: \(error.message)")
      return error.status
    }
  }

  /// What a request takes where a person watches: as long as to see that the stored timeline is there first.
  private static let liveLatency = Duration.milliseconds(300)

  /// Whatever is stored is good enough to be shown first; the fresh timeline is asked for beside it.
  static let freshness = Freshness(timeToLive: .seconds(Int64.max))

  private var folder: URL { options.dataFolder ?? DataFolder.default }

  private func makeStore() -> PersistentDataStore<FileStore> {
    let timelines = options.serverURL.map { DataFolder.timelines(of: $0, in: folder) } ?? folder
    return PersistentDataStore(FileStore(folder: timelines, now: now))
  }

  private func showLive(on terminal: any TerminalType) async throws(Failure) -> CommandStatus {
    let store = makeStore()
    // What can't be read is reported while standard error is still to be seen.
    _ = try await storedTimeline(in: store)
    let (repo, network) = try await makeRepo(store: store, latency: Self.liveLatency)
    await repo.credentialsChanged(userID: options.userID)
    let isOnline: Bool
    do throws(StoreError) {
      isOnline = try await network?.restore() ?? true
    } catch {
      throw Failure(error)
    }
    let screen = await LiveTimeline(
      userID: options.userID, repo: repo, network: network, isOnline: isOnline, now: now)
    return CommandStatus(await ScreenSession(of: screen, on: terminal).run(), console: console)
  }

  private func show() async throws(Failure) {
    let store = makeStore()
    let stored = try await storedTimeline(in: store)
    let repo = try await makeRepo(store: store).repo
    await repo.credentialsChanged(userID: options.userID)
    var observers = TimelineObservers(of: repo.momentsDetails(userID: options.userID))

    if let stored {
      // Observers alone would wait for a store that cannot be read until it can.
      try await perform { () async throws(MomentsRepoError) in try await repo.refreshMoments(userID: options.userID) }
      guard let details = await observers.next() else { return }
      console.print("Stored timeline of \(details.userDetails.name), saved \(age(of: stored.savedAt)):")
      printRows(of: details, repo: repo)
    } else {
      console.print("No timeline is stored yet.")
    }

    try await perform { () async throws(MomentsRepoError) in try await repo.getMoments(userID: options.userID) }
    guard let fresh = await observers.next() else { return }
    console.print("")
    console.print("Fresh timeline of \(fresh.userDetails.name):")
    printRows(of: fresh, repo: repo)

    guard let moment = fresh.moments.first(where: { $0.isLiked == false }) else {
      console.print("")
      console.print("Every moment is liked already.")
      return
    }
    console.print("")
    console.print("Liking \(TimelineText.heading(of: moment))")
    try await perform { () async throws(MomentsRepoError) in
      try await repo.updateLike(isLiked: true, momentID: moment.id, fromUserID: options.userID)
    }
    for line in await observers.describeNext(momentID: moment.id) { console.print(line) }
  }

  /// What is stored; `nil` also for bytes that could not be decoded, which is reported.
  private func storedTimeline(
    in store: PersistentDataStore<FileStore>
  ) async throws(Failure) -> StoredValue<MomentsDetails>? {
    do throws(StoreError) {
      return try await store.momentsDetails(userID: options.userID)
    } catch {
      guard case .undecodable = error else { throw Failure(error) }
      console.error("moments: \(error)")
      return nil
    }
  }

  /// The repository, and the network to the demonstration server where that is asked.
  private func makeRepo(
    store: PersistentDataStore<FileStore>, latency: Duration = .zero,
    leadership: any Leadership = StoreLeadership()
  ) async throws(Failure) -> (repo: MomentsRepo, network: DemoNetwork?) {
    guard let url = options.serverURL else {
      do throws(StoreError) {
        let demonstration = try await Demonstration.open(
          store, server: Demonstration.server(in: folder), latency: latency, leadership: leadership)
        return (demonstration.repo, demonstration.network)
      } catch {
        throw Failure(error)
      }
    }
    let session = APISession(url: url)
    let repo = MomentsRepo(
      persistentDataStore: store, getMomentsByUserIDSession: GetMomentsByUserIDSession(apiSession: session),
      updateMomentLikeSession: UpdateMomentLikeSession(apiSession: session), freshness: Self.freshness,
      leadership: leadership)
    return (repo, nil)
  }

  private func perform(_ call: () async throws(MomentsRepoError) -> Void) async throws(Failure) {
    do throws(MomentsRepoError) {
      try await call()
    } catch {
      throw Failure(error)
    }
  }

  private func printRows(of details: MomentsDetails, repo: MomentsRepo) {
    for moment in details.moments {
      console.print(
        TimelineText.row(
          MomentListItemViewModel(moment: moment, momentsRepo: repo, now: now(), locale: TimelineText.locale)))
    }
  }

  private func age(of date: Date) -> String {
    TimelineText.age(of: date, at: now())
  }
}
