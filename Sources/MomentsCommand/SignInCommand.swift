internal import Foundation
internal import Multicast
internal import SignIn

/// `moments sign-in`: signs in, at first with a wrong password, and out again, as a person would, and prints what the
/// screen shows.
@MainActor
struct SignInCommand {
  let console: Console
  /// The same on every run, so that the lines are the same.
  var now: @Sendable () -> Date = { Date(timeIntervalSince1970: 1_543_665_600) }

  func run() async -> CommandStatus {
    let answers = CurrentValueRelay(true)
    let session = InMemorySignInSession(
      accounts: [.init(uid: "007", username: "jake", password: Password("low-level"))], now: now,
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
    return .success
  }
}
