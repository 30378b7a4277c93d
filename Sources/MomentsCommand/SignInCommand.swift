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

/// What a person does on the screen, a step at a time.
@MainActor
private struct SignInScript {
  let model: SignInViewModel
  let states: MulticastStream<SignState, Never>.AsyncIterator
  let console: Console

  func begin() async {
    await printState()
    show()
  }

  func type(username: String) {
    console.print("\nUsername: \(username)")
    model.username = username
    show()
  }

  func type(password: String) {
    model.password = Password(password)
    console.print("\nPassword: \(model.password)")
    show()
  }

  /// Presses the button, and presses it again while the server has not answered.
  func submit(whileBusy answers: CurrentValueRelay<Bool>) async {
    let title = model.submitTitle
    console.print("\n\(title)")
    answers.send(false)
    async let submit: Void = model.submit()
    await until { [model] in model.showsIndicator }
    await printState()
    console.print("Busy: the indicator shows, the text is hidden. \(title) once more is ignored.")
    await model.submit()
    answers.send(true)
    await submit
    await until { [model] in !model.showsIndicator }
    await printState()
    show()
  }

  func showRecentSignIns() async {
    console.print("\nRecent sign-ins")
    await model.recentSignIns.reload()
    await until { [model] in !model.recentSignIns.dates.isEmpty }
    for date in model.recentSignIns.dates { console.print("\(date)") }
  }

  private func printState() async {
    // A copy reads the same subscription.
    var states = states
    if let state = await states.next() { console.print("state changed: \(state)") }
  }

  private func show() {
    let controls = [
      ("username", model.isUsernameEnabled), ("password", model.isPasswordEnabled),
      (model.submitTitle, model.isSubmitEnabled),
    ]
    console.print(controls.map { "\($0): \($1 ? "enabled" : "disabled")" }.joined(separator: ", "))
    if !model.message.isEmpty { console.print(model.message) }
  }
}
