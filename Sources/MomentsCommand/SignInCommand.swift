internal import Foundation
internal import Multicast
internal import SignIn
internal import TerminalUI

/// `moments sign-in`: a sign-in screen, live in a terminal; elsewhere signs in, at first with a wrong password, and out
/// again, as a person would, and prints what the screen shows.
@MainActor
struct SignInCommand {
  let console: Console
  /// Where to show it live; nil to print it line by line.
  var terminal: (any TerminalType)?
  /// The time of a sign-in; nil for the real one in a terminal, and for one that makes the same lines on every run
  /// elsewhere.
  var now: (@Sendable () -> Date)?

  private static let accounts = [
    InMemorySignInSession.Account(uid: "007", username: "jake", password: Password("low-level"))
  ]

  /// How long the server takes where a person watches: as long as to see the indicator.
  private static let liveLatency = Duration.milliseconds(600)

  func run() async -> CommandStatus {
    if let terminal { return await showLive(on: terminal) }
    await playScript()
    return .success
  }

  private func showLive(on terminal: any TerminalType) async -> CommandStatus {
    let session = InMemorySignInSession(
      accounts: Self.accounts, now: now ?? { Date() },
      answering: {
        // A cancellation is seen by the session.
        try? await Task.sleep(for: Self.liveLatency)
      })
    let screen = LiveSignIn(
      service: UserService(session: session),
      hint: "The demonstration knows jake, whose password is low-level.")
    return CommandStatus(await ScreenSession(of: screen, on: terminal).run(), console: console)
  }

  private func playScript() async {
    let answers = CurrentValueRelay(true)
    let session = InMemorySignInSession(
      accounts: Self.accounts, now: now ?? { Date(timeIntervalSince1970: 1_543_665_600) },
      answering: { for await isAnswering in answers.stream where isAnswering { return } })
    let service = UserService(session: session)
    let model = SignInViewModel(userService: service)
    let running = Task { await model.run() }
    let script = SignInScript(model: model, states: service.signStates.makeAsyncIterator(), console: console)

    await script.begin()
    script.type(username: "jak")
    script.type(username: "jake")
    script.type(password: "guess")
    await script.submit(whileBusy: answers)
    script.type(password: "low-level")
    await script.submit(whileBusy: answers)
    await script.showRecentSignIns()
    await script.submit(whileBusy: answers)

    running.cancel()
    await running.value
  }
}
