internal import Multicast
internal import SignIn

/// What a person does on the screen, a step at a time.
@MainActor
struct SignInScript {
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
