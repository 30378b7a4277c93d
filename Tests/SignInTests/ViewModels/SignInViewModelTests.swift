import Foundation
import Multicast
import MulticastTesting
import SignIn
import Testing

@MainActor
@Suite(.timeLimit(.minutes(15))) struct SignInViewModelTests {
  private nonisolated static let user = SignInSessionStub.user
  private static let signedMessage = "当前用户: jake\n登录时间: 2018-12-01 12:00:00 +0000"

  /// The outputs of a screen.
  private struct Shown: Equatable {
    var isUsernameEnabled: Bool
    var isPasswordEnabled: Bool
    var isSubmitEnabled: Bool
    var submitTitle: String
    var showsIndicator: Bool
    var isTextHidden: Bool
  }

  private func shown(by model: SignInViewModel) -> Shown {
    Shown(
      isUsernameEnabled: model.isUsernameEnabled, isPasswordEnabled: model.isPasswordEnabled,
      isSubmitEnabled: model.isSubmitEnabled, submitTitle: model.submitTitle, showsIndicator: model.showsIndicator,
      isTextHidden: model.isTextHidden)
  }

  private func filledIn(_ service: any UserServiceType) -> SignInViewModel {
    let model = SignInViewModel(userService: service)
    model.username = "jake"
    model.password = Password("secret")
    return model
  }

  @Test(arguments: [
    ("", "", false, false), ("jak", "", false, false), ("jak", "secret", false, false), ("jake", "", true, false),
    ("jake", "s", true, true), ("周杰伦吧", "s", true, true),
  ])
  func `To sign in, the password field needs a username of four characters, and Submit also needs a password`(
    _ username: String, _ password: String, _ isPasswordEnabled: Bool, _ isSubmitEnabled: Bool
  ) {
    let model = SignInViewModel(userService: UserService(session: SignInSessionStub()))
    model.username = username
    model.password.text = password
    #expect(
      shown(by: model)
        == Shown(
          isUsernameEnabled: true, isPasswordEnabled: isPasswordEnabled, isSubmitEnabled: isSubmitEnabled,
          submitTitle: "Submit", showsIndicator: false, isTextHidden: false))
  }

  @Test func `The fields, the button, the indicator and the text follow the state`() async {
    let signIn = Gate()
    let signOut = Gate()
    let service = UserService(
      session: SignInSessionStub(
        signIn: {
          await signIn.pass()
          return Self.user
        }, signOut: { await signOut.pass() }))
    let model = filledIn(service)
    let running = Task { await model.run() }
    let unsigned = shown(by: model)
    let signingIn = Task { await model.submit() }
    await until { model.showsIndicator }
    #expect(
      shown(by: model)
        == Shown(
          isUsernameEnabled: false, isPasswordEnabled: false, isSubmitEnabled: false, submitTitle: "Submit",
          showsIndicator: true, isTextHidden: true))
    signIn.open()
    await signingIn.value
    await until { !model.showsIndicator }
    #expect(
      shown(by: model)
        == Shown(
          isUsernameEnabled: false, isPasswordEnabled: false, isSubmitEnabled: true, submitTitle: "SignOut",
          showsIndicator: false, isTextHidden: false))
    let signingOut = Task { await model.submit() }
    await until { model.showsIndicator }
    #expect(
      shown(by: model)
        == Shown(
          isUsernameEnabled: false, isPasswordEnabled: false, isSubmitEnabled: false, submitTitle: "Submit",
          showsIndicator: true, isTextHidden: true))
    signOut.open()
    await signingOut.value
    await until { !model.showsIndicator }
    // The next user has to enter a password.
    #expect(model.username == "jake")
    #expect(model.password.isEmpty)
    model.password = Password("secret")
    #expect(shown(by: model) == unsigned)
    running.cancel()
    await running.value
  }

  @Test func `The message names the missing input`() {
    let model = SignInViewModel(userService: UserService(session: SignInSessionStub()))
    #expect(model.message == "请填写用户名")
    model.username = "jak"
    #expect(model.message == "用户名太短, 应该大于4位")
    model.username = "jake"
    #expect(model.message == "请填写密码")
    model.password.text = "secret"
    #expect(model.message == "")
  }

  @Test func `The message names the signed-in user and the time of the sign-in, and reports a sign-out`() async {
    let model = filledIn(UserService(session: SignInSessionStub()))
    let running = Task { await model.run() }
    await model.submit()
    await until { model.submitTitle == "SignOut" }
    #expect(model.message == Self.signedMessage)
    await model.submit()
    await until { model.isUsernameEnabled }
    #expect(model.message == "已经退出登录")
    model.username = ""
    #expect(model.message == "请填写用户名")
    running.cancel()
    await running.value
  }

  @Test func `A failed sign-in is shown until the input changes`() async {
    let session = SignInSessionStub(signIn: { () throws(SignInSessionError) in throw .wrongUsernameOrPassword })
    let model = filledIn(UserService(session: session))
    let running = Task { await model.run() }
    await model.submit()
    await until { !model.message.isEmpty }
    #expect(model.message == "The username or the password is wrong. Check both, then try again.")
    #expect(session.signInRequests == 1)
    await until { model.isSubmitEnabled }
    model.password.text = "Secret"
    #expect(model.message == "")
    running.cancel()
    await running.value
  }

  @Test func `A failed sign-out is shown while the user stays signed in`() async {
    let model = filledIn(
      UserService(
        session: SignInSessionStub(signOut: { () throws(SignInSessionError) in throw .unreachable(reason: "no route") })
      )
    )
    let running = Task { await model.run() }
    await model.submit()
    await until { model.message == Self.signedMessage }
    await model.submit()
    await until { model.isSubmitEnabled && model.message != Self.signedMessage }
    #expect(model.message == "The server could not be reached (no route). Check the connection, then try again.")
    #expect(model.submitTitle == "SignOut")
    running.cancel()
    await running.value
  }

  @Test func `A sign-out that would lose changes asks for confirmation, and the changes can be kept`() async {
    let data = UserDataStub(unsentCount: 2)
    let model = filledIn(UserService(session: SignInSessionStub(), userData: [data]))
    let running = Task { await model.run() }
    await model.submit()
    await until { model.message == Self.signedMessage }
    model.keepChanges()
    for _ in 0..<2 {
      await model.submit()
      await until { model.asksToDiscard }
      #expect(model.submitTitle == "Discard and SignOut")
      #expect(
        model.message == "The server doesn't have 2 of your changes. Let them be sent, or sign out without them.")
      model.keepChanges()
      #expect(!model.asksToDiscard)
      #expect(model.submitTitle == "SignOut")
      #expect(model.message == Self.signedMessage)
    }
    await model.submit()
    await until { model.asksToDiscard }
    await model.submit()
    await until { model.message == "已经退出登录" }
    #expect(!model.asksToDiscard)
    #expect(
      data.log == [
        "open 007", "erase 007", "open 007", "erase 007", "open 007", "erase 007", "open 007", "discard 007",
      ])
    running.cancel()
    await running.value
  }

  @Test func `A cancelled submit isn't a failure`() async {
    let gate = Gate()
    let model = filledIn(
      UserService(
        session: SignInSessionStub(signIn: { () throws(SignInSessionError) in
          await gate.pass()
          throw .cancelled
        })))
    let running = Task { await model.run() }
    let submit = Task { await model.submit() }
    await until { model.showsIndicator }
    submit.cancel()
    await submit.value
    await until { !model.showsIndicator }
    #expect(model.message == "")
    #expect(model.submitTitle == "Submit")
    running.cancel()
    await running.value
  }

  @Test func `Submit is ignored while a sign-in is in flight, even by a model that hasn't received that state yet`()
    async
  {
    let gate = Gate()
    let session = SignInSessionStub(signIn: {
      await gate.pass()
      return Self.user
    })
    let service = UserService(session: session)
    let model = filledIn(service)
    let stale = filledIn(service)
    let running = Task { await model.run() }
    let first = Task { await model.submit() }
    await until { model.showsIndicator }
    await model.submit()
    await stale.submit()
    #expect(stale.message == "")
    gate.open()
    await first.value
    await until { model.submitTitle == "SignOut" }
    #expect(session.signInRequests == 1)
    running.cancel()
    await running.value
  }

  @Test func `Submit sends no request unless a username and a password are entered`() async {
    let session = SignInSessionStub()
    let model = SignInViewModel(userService: UserService(session: session))
    await model.submit()
    model.username = "jake"
    await model.submit()
    #expect(session.signInRequests == 0)
  }

  @Test func `Two screens of one service agree, and a screen that opens later shows the current state`() async throws {
    let service = UserService(session: SignInSessionStub())
    let first = filledIn(service)
    let second = SignInViewModel(userService: service)
    let running = [Task { await first.run() }, Task { await second.run() }]
    await first.submit()
    await until { first.submitTitle == "SignOut" && second.submitTitle == "SignOut" }
    #expect(second.message == Self.signedMessage)
    let late = SignInViewModel(userService: service)
    #expect(late.submitTitle == "SignOut")
    #expect(late.message == Self.signedMessage)
    // A sign-out needs no input.
    #expect(late.isSubmitEnabled)
    await late.submit()
    #expect(service.signState == .unsigned)
    for running in running {
      running.cancel()
      await running.value
    }
  }

  @Test func `The list of recent sign-ins has its own model, which the screen's model owns and runs`() async {
    let service = UserService(session: SignInSessionStub(), pageSize: 2)
    let model = filledIn(service)
    let running = Task { await model.run() }
    await model.recentSignIns.reload()
    #expect(model.recentSignIns.error == .refused(.unsigned))
    await model.submit()
    await model.recentSignIns.reload()
    #expect(model.recentSignIns.error == nil)
    await until { model.recentSignIns.dates.count == 2 }
    await model.recentSignIns.loadMore()
    await until { model.recentSignIns.dates.count == 4 }
    #expect(model.recentSignIns.dates.first == SignInSessionStub.date)
    await until { model.submitTitle == "SignOut" }
    await model.submit()
    await until { model.recentSignIns.dates == [] }
    running.cancel()
    await running.value
  }

  @Test func `A screen that runs again after a sign-out doesn't show the sign-ins of the previous user`() async throws {
    let service = UserService(session: SignInSessionStub())
    try await service.signIn()
    try await service.reloadRecentSignIns()
    let model = RecentSignInsViewModel(userService: service)
    let first = Task { await model.run() }
    await until { !model.dates.isEmpty }
    first.cancel()
    await first.value
    try await service.performSignout()
    let second = Task { await model.run() }
    await until { model.dates.isEmpty }
    second.cancel()
    await second.value
  }

  @Test func `A model is released with its last reference even while run is in progress, and the call then ends`()
    async
  {
    let service = UserService(session: SignInSessionStub())
    var model: SignInViewModel? = filledIn(service)
    weak let released = model
    weak let child = model?.recentSignIns
    let running = Task { [weak model] in await model?.run() }
    await model?.submit()
    await until { released?.submitTitle == "SignOut" }
    model = nil
    #expect(released == nil)
    await running.value
    #expect(child == nil)
  }

  @Test func `A second run replaces the first one`() async {
    let model = filledIn(UserService(session: SignInSessionStub()))
    let first = Task { await model.run() }
    await model.submit()
    await until { model.submitTitle == "SignOut" }
    let second = Task { await model.run() }
    await first.value
    await model.submit()
    await until { model.submitTitle == "Submit" && model.isUsernameEnabled }
    second.cancel()
    await second.value
  }
}
