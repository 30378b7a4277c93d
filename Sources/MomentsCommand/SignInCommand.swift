internal import DataStore
internal import Foundation
internal import Moments
internal import Multicast
internal import SignIn
internal import TerminalUI

/// `moments sign-in`: a sign-in screen and the timeline of the user who is signed in, live in a terminal.
///
/// Elsewhere two users sign in and out, as persons would, and what the screen shows is printed: at first with a wrong
/// password, then without a network, with a like that waits.
@MainActor
struct SignInCommand {
  /// Where timelines are kept; `nil` for the user's own folder in a terminal, and for memory elsewhere.
  let dataFolder: URL?
  let console: Console
  /// Where to show it live; `nil` to print it line by line.
  let terminal: (any TerminalType)?
  /// The time of a sign-in; `nil` for the real one in a terminal, and for one that makes the same lines on every run
  /// elsewhere.
  let now: (@Sendable () -> Date)?

  init(
    dataFolder: URL? = nil, console: Console, terminal: (any TerminalType)? = nil,
    now: (@Sendable () -> Date)? = nil
  ) {
    (self.dataFolder, self.console, self.terminal, self.now) = (dataFolder, console, terminal, now)
  }

  private static let accounts = [
    InMemorySignInSession.Account(uid: "0", username: "jake", password: Password("low-level")),
    InMemorySignInSession.Account(uid: "1", username: "mei-zhou", password: Password("sunscreen")),
  ]

  /// How long the servers take where a person watches: as long as to see the indicator.
  private static let liveLatency = Duration.milliseconds(600)

  /// How long likes that wait have to be sent at a sign-out where a person watches.
  private static let liveSendingTime = Duration.seconds(2)

  func run() async -> CommandStatus {
    do throws(StoreError) {
      if let terminal { return try await showLive(on: terminal) }
      return try await playScript()
    } catch {
      console.printable.error("moments: \(error)")
      return .inputOutput
    }
  }

  private func showLive(on terminal: any TerminalType) async throws(StoreError) -> CommandStatus {
    let folder = dataFolder ?? DataFolder.default
    let now = now ?? { Date() }
    let demonstration = try await Demonstration.open(
      PersistentDataStore(FileStore(folder: folder, now: now)), server: Demonstration.server(in: folder),
      latency: Self.liveLatency)
    let (repo, network) = (demonstration.repo, demonstration.network)
    try await network.restore()
    let session = InMemorySignInSession(
      accounts: Self.accounts, now: now,
      answering: {
        // A cancellation is seen by the session.
        try? await Task.sleep(for: Self.liveLatency)
      })
    let screen = LiveAccount(
      service: UserService(
        session: session, userData: [MomentsUserData(repo: repo, sendingTime: Self.liveSendingTime)]),
      hint: "The demonstration knows jake: low-level, and mei-zhou: sunscreen.",
      makeTimeline: { userID in
        LiveTimeline(
          userID: userID, repo: repo, network: network, isOnline: network.isOnline, quit: "account", now: now)
      })
    return CommandStatus(await ScreenSession(of: screen, on: terminal).run(), console: console)
  }

  private func playScript() async throws(StoreError) -> CommandStatus {
    let now = now ?? { Date(timeIntervalSince1970: 1_543_665_600) }
    let store: any PersistentDataStoreType =
      dataFolder.map { PersistentDataStore(FileStore(folder: $0, now: now)) }
      ?? PersistentDataStore(InMemoryStore(now: now))
    let demonstration = try await Demonstration.open(store, server: dataFolder.map(Demonstration.server))
    let answers = CurrentValueRelay(true)
    let session = InMemorySignInSession(
      accounts: Self.accounts, now: now,
      answering: { for await isAnswering in answers.stream where isAnswering { return } })
    let service = UserService(
      session: session, userData: [MomentsUserData(repo: demonstration.repo, sendingTime: .zero)])
    let model = SignInViewModel(userService: service)
    let running = Task { await model.run() }
    let script = SignInScript(
      model: model, states: service.signStates.makeAsyncIterator(), demonstration: demonstration, store: store,
      console: console)
    let status = await play(script, answers)
    running.cancel()
    await running.value
    return status
  }

  private func play(_ script: SignInScript, _ answers: CurrentValueRelay<Bool>) async -> CommandStatus {
    await script.begin()
    script.type(username: "jak")
    script.type(username: "jake")
    script.type(password: "guess")
    await script.submit(whileBusy: answers)
    script.type(password: "low-level")
    await script.submit(whileBusy: answers)
    await script.showRecentSignIns()
    do throws(MomentsRepoError) {
      try await script.showTimeline(of: "0")
      try await script.likeWithoutNetwork(of: "0")
      await script.submitRefused()
      await script.submit(whileBusy: answers)
      try await script.reconnect()
      script.type(username: "mei-zhou")
      script.type(password: "sunscreen")
      await script.submit(whileBusy: answers)
      try await script.showTimeline(of: "1")
      await script.submit(whileBusy: answers)
      return .success
    } catch {
      console.printable.error("moments: \(error)")
      return if case .store = error { .inputOutput } else { .unavailable }
    }
  }
}
