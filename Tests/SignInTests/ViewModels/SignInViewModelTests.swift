import Foundation
import Multicast
import MulticastTesting
import SignIn
import Testing

@MainActor
@Suite(.timeLimit(.minutes(15))) struct SignInViewModelTests {
  private nonisolated static let user = SignInSessionStub.user
  /// The Chinese message that names the signed-in user and the time of the sign-in.
  private static let signedMessage = "当前用户: jake\n登录时间: 2018-12-01 12:00:00 +0000"
  /// The Chinese message that the user has signed out.
  private static let signedOutMessage = "已经退出登录"

  /// The outputs of a screen that the tests compare as one value.
  private struct Outputs: Equatable {
    var isUsernameEnabled: Bool
    var isPasswordEnabled: Bool
    var isSubmitEnabled: Bool
    var submitTitle: String
    var showsIndicator: Bool
    var isTextHidden: Bool
  }

  private func outputs(of model: SignInViewModel) -> Outputs {
    Outputs(
      isUsernameEnabled: model.isUsernameEnabled, isPasswordEnabled: model.isPasswordEnabled,
      isSubmitEnabled: model.isSubmitEnabled, submitTitle: model.submitTitle, showsIndicator: model.showsIndicator,
      isTextHidden: model.isTextHidden)
  }

  private func makeFilledInModel(for service: any UserServiceType) -> SignInViewModel {
    let model = SignInViewModel(userService: service)
    model.username = "jake"
    model.password = Password("secret")
    return model
  }

  @Test(arguments: [
    ("", "", false, false), ("jak", "", false, false), ("jak", "secret", false, false), ("jake", "", true, false),
    ("jake", "s", true, true), ("周杰伦吧", "s", true, true),
  ])
  func `The password field needs a username of four characters, and the Submit button also needs a password`(
    _ username: String, _ password: String, _ isPasswordEnabled: Bool, _ isSubmitEnabled: Bool
  ) {
    let model = SignInViewModel(userService: UserService(session: SignInSessionStub()))
    model.username = username
    model.password.text = password
    #expect(
      outputs(of: model)
        == Outputs(
          isUsernameEnabled: true, isPasswordEnabled: isPasswordEnabled, isSubmitEnabled: isSubmitEnabled,
          submitTitle: "Submit", showsIndicator: false, isTextHidden: false))
  }

  @Test func `The fields, the button, the indicator and the text follow the state`() async {
    let signInGate = Gate()
    let signOutGate = Gate()
    let service = UserService(
      session: SignInSessionStub(
        signIn: {
          await signInGate.pass()
          return Self.user
        }, signOut: { await signOutGate.pass() }))
    let model = makeFilledInModel(for: service)
    let runTask = Task { await model.run() }
    let unsignedOutputs = outputs(of: model)
    let signInTask = Task { await model.submit() }
    await until { model.showsIndicator }
    #expect(
      outputs(of: model)
        == Outputs(
          isUsernameEnabled: false, isPasswordEnabled: false, isSubmitEnabled: false, submitTitle: "Submit",
          showsIndicator: true, isTextHidden: true))
    signInGate.open()
    await signInTask.value
    await until { !model.showsIndicator }
    #expect(
      outputs(of: model)
        == Outputs(
          isUsernameEnabled: false, isPasswordEnabled: false, isSubmitEnabled: true, submitTitle: "SignOut",
          showsIndicator: false, isTextHidden: false))
    let signOutTask = Task { await model.submit() }
    await until { model.showsIndicator }
    #expect(
      outputs(of: model)
        == Outputs(
          isUsernameEnabled: false, isPasswordEnabled: false, isSubmitEnabled: false, submitTitle: "Submit",
          showsIndicator: true, isTextHidden: true))
    signOutGate.open()
    await signOutTask.value
    await until { !model.showsIndicator }
    // The next user has to enter a password.
    #expect(model.username == "jake")
    #expect(model.password.isEmpty)
    model.password = Password("secret")
    #expect(outputs(of: model) == unsignedOutputs)
    runTask.cancel()
    await runTask.value
  }

  @Test func `The message names the missing input`() {
    let model = SignInViewModel(userService: UserService(session: SignInSessionStub()))
    // The Chinese messages say: enter a username, the username is too short, enter a password.
    #expect(model.message == "请填写用户名")
    model.username = "jak"
    #expect(model.message == "用户名太短, 应该大于4位")
    model.username = "jake"
    #expect(model.message == "请填写密码")
    model.password.text = "secret"
    #expect(model.message == "")
  }

  @Test func `The message names the signed-in user and the time of the sign-in, and reports a sign-out`() async {
    let model = makeFilledInModel(for: UserService(session: SignInSessionStub()))
    let runTask = Task { await model.run() }
    await model.submit()
    await until { model.submitTitle == "SignOut" }
    #expect(model.message == Self.signedMessage)
    await model.submit()
    await until { model.isUsernameEnabled }
    #expect(model.message == Self.signedOutMessage)
    model.username = ""
    // The message asks for a username.
    #expect(model.message == "请填写用户名")
    runTask.cancel()
    await runTask.value
  }

  @Test func `A failed sign-in is shown until the input changes`() async {
    let session = SignInSessionStub(signIn: { () throws(SignInSessionError) in throw .wrongUsernameOrPassword })
    let model = makeFilledInModel(for: UserService(session: session))
    let runTask = Task { await model.run() }
    await model.submit()
    await until { !model.message.isEmpty }
    #expect(model.message == "The username or the password is wrong. Check both, then try again.")
    #expect(session.signInRequestCount == 1)
    await until { model.isSubmitEnabled }
    model.password.text = "Secret"
    #expect(model.message == "")
    runTask.cancel()
    await runTask.value
  }

  @Test func `A failed sign-out is shown while the user stays signed in`() async {
    let model = makeFilledInModel(
      for: UserService(
        session: SignInSessionStub(signOut: { () throws(SignInSessionError) in throw .unreachable(reason: "no route") })
      )
    )
    let runTask = Task { await model.run() }
    await model.submit()
    await until { model.message == Self.signedMessage }
    await model.submit()
    await until { model.isSubmitEnabled && model.message != Self.signedMessage }
    #expect(model.message == "The server could not be reached (no route). Check the connection, then try again.")
    #expect(model.submitTitle == "SignOut")
    runTask.cancel()
    await runTask.value
  }

  @Test func `A sign-out that would lose changes asks for confirmation, and the changes can be kept`() async {
    let data = UserDataStub(unsentCount: 2)
    let model = makeFilledInModel(for: UserService(session: SignInSessionStub(), userData: [data]))
    let runTask = Task { await model.run() }
    await model.submit()
    await until { model.message == Self.signedMessage }
    // This call does nothing, because the model doesn't ask yet.
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
    await until { model.message == Self.signedOutMessage }
    #expect(!model.asksToDiscard)
    // The sign-in opens the data, and each of the three refused sign-outs opens it again after its failed erasure.
    #expect(
      data.log == [
        "open 007", "erase 007", "open 007", "erase 007", "open 007", "erase 007", "open 007", "discard 007",
      ])
    runTask.cancel()
    await runTask.value
  }

  @Test func `A cancelled submit isn't a failure`() async {
    let gate = Gate()
    let model = makeFilledInModel(
      for: UserService(
        session: SignInSessionStub(signIn: { () throws(SignInSessionError) in
          await gate.pass()
          throw .cancelled
        })))
    let runTask = Task { await model.run() }
    let submit = Task { await model.submit() }
    await until { model.showsIndicator }
    submit.cancel()
    await submit.value
    await until { !model.showsIndicator }
    #expect(model.message == "")
    #expect(model.submitTitle == "Submit")
    runTask.cancel()
    await runTask.value
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
    let model = makeFilledInModel(for: service)
    let staleModel = makeFilledInModel(for: service)
    let runTask = Task { await model.run() }
    let firstSubmit = Task { await model.submit() }
    await until { model.showsIndicator }
    await model.submit()
    await staleModel.submit()
    #expect(staleModel.message == "")
    gate.open()
    await firstSubmit.value
    await until { model.submitTitle == "SignOut" }
    #expect(session.signInRequestCount == 1)
    runTask.cancel()
    await runTask.value
  }

  @Test func `Submit sends no request unless a username and a password are entered`() async {
    let session = SignInSessionStub()
    let model = SignInViewModel(userService: UserService(session: session))
    await model.submit()
    model.username = "jake"
    await model.submit()
    #expect(session.signInRequestCount == 0)
  }

  @Test func `Two screens of one service agree, and a screen that opens later shows the current state`() async throws {
    let service = UserService(session: SignInSessionStub())
    let first = makeFilledInModel(for: service)
    let second = SignInViewModel(userService: service)
    let runTasks = [Task { await first.run() }, Task { await second.run() }]
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
    for runTask in runTasks {
      runTask.cancel()
      await runTask.value
    }
  }

  @Test func `The list of recent sign-ins has its own model, which the screen's model owns and runs`() async {
    let service = UserService(session: SignInSessionStub(), pageSize: 2)
    let model = makeFilledInModel(for: service)
    let runTask = Task { await model.run() }
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
    runTask.cancel()
    await runTask.value
  }

  @Test func `A screen that runs again after a sign-out doesn't show the sign-ins of the previous user`() async throws {
    let service = UserService(session: SignInSessionStub())
    try await service.signIn()
    try await service.reloadRecentSignIns()
    let model = RecentSignInsViewModel(userService: service)
    let firstRun = Task { await model.run() }
    await until { !model.dates.isEmpty }
    firstRun.cancel()
    await firstRun.value
    try await service.performSignout()
    let secondRun = Task { await model.run() }
    await until { model.dates.isEmpty }
    secondRun.cancel()
    await secondRun.value
  }

  @Test func `A model is released with its last reference even while run is in progress, and the call then ends`()
    async
  {
    let service = UserService(session: SignInSessionStub())
    var model: SignInViewModel? = makeFilledInModel(for: service)
    weak let weakModel = model
    weak let weakRecentSignIns = model?.recentSignIns
    let runTask = Task { [weak model] in await model?.run() }
    await model?.submit()
    await until { weakModel?.submitTitle == "SignOut" }
    model = nil
    #expect(weakModel == nil)
    await runTask.value
    #expect(weakRecentSignIns == nil)
  }

  @Test func `A second run replaces the first one`() async {
    let model = makeFilledInModel(for: UserService(session: SignInSessionStub()))
    let firstRun = Task { await model.run() }
    await model.submit()
    await until { model.submitTitle == "SignOut" }
    let secondRun = Task { await model.run() }
    await firstRun.value
    await model.submit()
    await until { model.submitTitle == "Submit" && model.isUsernameEnabled }
    secondRun.cancel()
    await secondRun.value
  }
}
