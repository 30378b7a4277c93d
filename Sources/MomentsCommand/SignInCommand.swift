internal import DataStore
internal import Foundation
internal import Moments
internal import Multicast
internal import SignIn
internal import TerminalUI

/// The command `moments sign-in`: shows a sign-in screen and the timeline of the signed-in user, live in a terminal.
///
/// Without a terminal, a script signs two users in and out, and prints what the screen shows. The script includes a
/// wrong password, and a sign-out with a pending like while the network is down.
@MainActor
struct SignInCommand {
  /// The folder of the timelines; `nil` for the default folder with a terminal, and for memory without one.
  let dataFolder: URL?
  let console: Console
  /// The terminal for the live screen; `nil` to print lines.
  let terminal: (any TerminalType)?
  /// Returns the current time, for sign-ins and saves.
  ///
  /// If it is `nil`, the live screen uses the real time, and the script a fixed time, so that every run of the script
  /// prints the same lines.
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

  /// The latency of the servers for the live screen, long enough for the user to see the activity indicator.
  private static let liveLatency = Duration.milliseconds(600)

  /// The time within which pending likes must be sent when the user signs out on the live screen.
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
      PersistentDataStore(FileStore(folder: folder, now: now)), serverStore: Demonstration.serverStore(in: folder),
      latency: Self.liveLatency)
    let (repo, network) = (demonstration.repo, demonstration.network)
    try await network.restore()
    let session = InMemorySignInSession(
      accounts: Self.accounts, now: now,
      answering: {
        // The error can be ignored, because the session itself checks for cancellation.
        try? await Task.sleep(for: Self.liveLatency)
      })
    let screen = LiveAccount(
      service: UserService(
        session: session, userData: [MomentsUserData(repo: repo, sendingTime: Self.liveSendingTime)]),
      hint: "Demo accounts (username/password): jake/low-level, mei-zhou/sunscreen.",
      makeTimeline: { userID in
        LiveTimeline(
          userID: userID, repo: repo, network: network, isOnline: network.isOnline, quitAction: "account", now: now)
      })
    return CommandStatus(await ScreenSession(of: screen, on: terminal).run(), console: console)
  }

  private func playScript() async throws(StoreError) -> CommandStatus {
    // Noon (UTC) on the first of December 2018.
    let now = now ?? { Date(timeIntervalSince1970: 1_543_665_600) }
    let store: any PersistentDataStoreType =
      dataFolder.map { PersistentDataStore(FileStore(folder: $0, now: now)) }
      ?? PersistentDataStore(InMemoryStore(now: now))
    let demonstration = try await Demonstration.open(store, serverStore: dataFolder.map(Demonstration.serverStore))
    let answeringStates = CurrentValueRelay(true)
    let session = InMemorySignInSession(
      accounts: Self.accounts, now: now,
      answering: { for await isAnswering in answeringStates.stream where isAnswering { return } })
    let service = UserService(
      session: session, userData: [MomentsUserData(repo: demonstration.repo, sendingTime: .zero)])
    let model = SignInViewModel(userService: service)
    let modelTask = Task { await model.run() }
    let script = SignInScript(
      model: model, stateIterator: service.signStates.makeAsyncIterator(), demonstration: demonstration, store: store,
      console: console)
    let status = await play(script, answeringStates)
    modelTask.cancel()
    await modelTask.value
    return status
  }

  private func play(_ script: SignInScript, _ answeringStates: CurrentValueRelay<Bool>) async -> CommandStatus {
    await script.begin()
    script.type(username: "jak")
    script.type(username: "jake")
    script.type(password: "guess")
    await script.submitTwice(toggling: answeringStates)
    script.type(password: "low-level")
    await script.submitTwice(toggling: answeringStates)
    await script.showRecentSignIns()
    do throws(MomentsRepoError) {
      try await script.showTimeline(of: "0")
      try await script.likeWithoutNetwork(by: "0")
      await script.submitRefusedSignOut()
      await script.submitTwice(toggling: answeringStates)
      try await script.reconnect()
      script.type(username: "mei-zhou")
      script.type(password: "sunscreen")
      await script.submitTwice(toggling: answeringStates)
      try await script.showTimeline(of: "1")
      await script.submitTwice(toggling: answeringStates)
      return .success
    } catch {
      console.printable.error("moments: \(error)")
      return if case .store = error { .inputOutput } else { .unavailable }
    }
  }
}
