internal import DataStore
internal import Foundation
internal import GraphQLClient
internal import Moments
internal import Multicast
internal import Repository
internal import TerminalUI

/// The command `moments` without a subcommand, and its subcommands `report` and `sign-out`.
///
/// `moments` alone shows the stored timeline and then the fresh one, live in a terminal. Without a terminal, it also
/// likes a moment, and prints what three observers of one repository receive: a list, a detail, and a counter of likes.
struct TimelineCommand {
  let options: TimelineOptions
  let console: Console
  /// The terminal for the live screen; `nil` to print lines.
  let terminal: (any TerminalType)?
  let now: @Sendable () -> Date

  init(
    options: TimelineOptions, console: Console, terminal: (any TerminalType)? = nil,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.options = options
    // Names, titles and errors may contain untrusted text from a server.
    self.console = console.printable
    self.terminal = terminal
    self.now = now
  }

  /// The reason why the command ends early.
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
          "Likes that can't be sent now: \(count). Add --discard to sign out and discard them."
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
      try await showAndLike()
      return .success
    } catch {
      console.error("moments: \(error.message)")
      return error.status
    }
  }

  /// Prints the state of the stored timeline and of the pending likes.
  ///
  /// Contacts no server and sends nothing, so it is safe to run while another process uses the same folder.
  func report() async -> CommandStatus {
    do throws(Failure) {
      let store = makeStore()
      let stored = try await storedTimeline(in: store).value
      let repo = try await makeRepo(store: store, leadership: NeverLeading()).repo
      if stored != nil {
        // The report covers only keys that are or were in use, so the timeline must be observed once.
        for await _ in repo.momentsDetails(userID: options.userID) { break }
      }
      for line in await repo.report().description.split(separator: "\n") { console.print(String(line)) }
      return .success
    } catch {
      console.error("moments: \(error.message)")
      return error.status
    }
  }

  /// Erases the stored data of the user.
  ///
  /// - Parameters:
  ///   - discardsLikes: Whether to discard pending likes without sending them. If `false`, likes that can't be sent
  ///     prevent the sign-out.
  ///   - sendingTime: The time within which pending likes must be sent.
  func signOut(discardsLikes: Bool, sendingTime: Duration = .seconds(5)) async -> CommandStatus {
    do throws(Failure) {
      let repo = try await makeRepo(store: makeStore()).repo
      do throws(SignOutError) {
        try await repo.signOut(
          userID: options.userID, unsent: discardsLikes ? .discard : .send(within: sendingTime))
      } catch {
        throw Failure(error)
      }
      console.print("User \(options.userID) is signed out. All data of the user is erased.")
      return .success
    } catch {
      console.error("moments: \(error.message)")
      return error.status
    }
  }

  /// The latency of a request for the live screen, long enough for the user to see the stored timeline first.
  private static let liveLatency = Duration.milliseconds(300)

  /// The freshness of stored timelines, which never expire because the command always fetches a fresh one as well.
  static let freshness = Freshness(timeToLive: .seconds(Int64.max))

  private var folder: URL { options.dataFolder ?? DataFolder.default }

  private func makeStore() -> PersistentDataStore<FileStore> {
    let timelinesFolder = options.serverURL.map { DataFolder.timelines(of: $0, in: folder) } ?? folder
    return PersistentDataStore(FileStore(folder: timelinesFolder, now: now))
  }

  private func showLive(on terminal: any TerminalType) async throws(Failure) -> CommandStatus {
    let store = makeStore()
    // Unreadable data is reported before the screen hides standard error.
    _ = try await storedTimeline(in: store)
    let (repo, network) = try await makeRepo(store: store, latency: Self.liveLatency)
    // Makes the user's data usable again after `moments sign-out`.
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

  private func showAndLike() async throws(Failure) {
    let store = makeStore()
    let (stored, isReadable) = try await storedTimeline(in: store)
    let repo = try await makeRepo(store: store).repo
    // Makes the user's data usable again after `moments sign-out`.
    await repo.credentialsChanged(userID: options.userID)
    var observers = TimelineObservers(of: repo.momentsDetails(userID: options.userID))

    if let stored {
      // A stored timeline never expires, so this call fetches nothing. It throws if the store can't be read, whereas
      // the observers would wait until the store can be read again.
      try await perform { () async throws(MomentsRepoError) in try await repo.refreshMoments(userID: options.userID) }
      guard let details = await observers.next() else { return }
      console.print("Stored timeline of \(details.userDetails.name), saved \(age(of: stored.savedAt)):")
      printRows(of: details, repo: repo)
    } else {
      console.print(isReadable ? "No timeline is stored yet." : "No timeline that can be read is stored yet.")
    }

    try await perform { () async throws(MomentsRepoError) in try await repo.getMoments(userID: options.userID) }
    guard let fresh = await observers.next(until: repo.loadState(userID: options.userID)) else { return }
    console.print("")
    console.print("Fresh timeline of \(fresh.userDetails.name):")
    printRows(of: fresh, repo: repo)

    guard let moment = fresh.moments.first(where: { $0.isLiked == false }) else {
      console.print("")
      console.print("Every moment is already liked.")
      return
    }
    console.print("")
    console.print("Liking \(TimelineText.heading(of: moment))")
    try await perform { () async throws(MomentsRepoError) in
      try await repo.updateLike(isLiked: true, momentID: moment.id, fromUserID: options.userID)
    }
    for line in await observers.describeNext(momentID: moment.id) { console.print(line) }
  }

  /// Returns the stored timeline, or `nil` if there is none, and whether it can be decoded.
  ///
  /// Prints an error for bytes that can't be decoded.
  private func storedTimeline(
    in store: PersistentDataStore<FileStore>
  ) async throws(Failure) -> (value: StoredValue<MomentsDetails>?, isReadable: Bool) {
    do throws(StoreError) {
      return (try await store.momentsDetails(userID: options.userID), true)
    } catch {
      guard case .undecodable = error else { throw Failure(error) }
      console.error("moments: \(error)")
      return (nil, false)
    }
  }

  /// Creates the repository, and the network of the demonstration unless another server is used.
  private func makeRepo(
    store: PersistentDataStore<FileStore>, latency: Duration = .zero,
    leadership: any Leadership = StoreLeadership()
  ) async throws(Failure) -> (repo: MomentsRepo, network: DemoNetwork?) {
    guard let url = options.serverURL else {
      do throws(StoreError) {
        let demonstration = try await Demonstration.open(
          store, serverStore: Demonstration.serverStore(in: folder), latency: latency, leadership: leadership)
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
