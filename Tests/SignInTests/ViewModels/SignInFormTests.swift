import Testing

@testable import SignIn

@Suite struct SignInFormTests {
  private static let user = SignInSessionStub.user
  private static let error = SignInError.session(.unreachable(reason: "no route"))
  /// The Chinese message that names the signed-in user and the time of the sign-in.
  private static let signedMessage = "当前用户: jake\n登录时间: 2018-12-01 12:00:00 +0000"
  /// The Chinese message that the user has signed out.
  private static let signedOutMessage = "已经退出登录"

  /// Returns a form that is filled in during the first state, and then updated with the other states.
  private func filledInForm(after states: SignState...) -> SignInForm {
    var form = SignInForm(state: states[0])
    form.username = "jake"
    form.password = Password("secret")
    for state in states.dropFirst() { form.update(state) }
    return form
  }

  @Test func `A failed sign-in is shown, whether its error is reported before or after the state unsigned`() {
    var reportedBefore = filledInForm(after: .unsigned, .signingIn)
    reportedBefore.report = .failedToSignIn(Self.error)
    reportedBefore.update(.unsigned)
    var reportedAfter = filledInForm(after: .unsigned, .signingIn, .unsigned)
    reportedAfter.report = .failedToSignIn(Self.error)
    #expect(reportedBefore == reportedAfter)
    #expect(reportedBefore.message == Self.error.description)
    // Here, the failure is reported even before the state `signingIn`.
    var reportedFirst = filledInForm(after: .unsigned)
    reportedFirst.report = .failedToSignIn(Self.error)
    reportedFirst.update(.signingIn)
    reportedFirst.update(.unsigned)
    #expect(reportedFirst == reportedAfter)
  }

  @Test func `A failed sign-out is shown, whether its error is reported before or after the state signed`() {
    var reportedBefore = filledInForm(after: .signed(Self.user), .signingOut)
    reportedBefore.report = .failedToSignOut(Self.error)
    reportedBefore.update(.signed(Self.user))
    var reportedAfter = filledInForm(after: .signed(Self.user), .signingOut, .signed(Self.user))
    reportedAfter.report = .failedToSignOut(Self.error)
    #expect(reportedBefore == reportedAfter)
    #expect(reportedBefore.message == Self.error.description)
  }

  @Test func `A failure is cleared when a later call from any screen succeeds`() {
    var form = filledInForm(after: .unsigned)
    form.report = .failedToSignIn(Self.error)
    form.update(.signingIn)
    form.update(.signed(Self.user))
    #expect(form.message == Self.signedMessage)
    form.report = .failedToSignOut(Self.error)
    form.update(.signingOut)
    form.update(.unsigned)
    #expect(form.message == Self.signedOutMessage)
  }

  @Test func `The form asks whether to discard changes only while the user who would lose them is signed in`() {
    let unsentError = SignInError.userData(.unsent(2))
    var form = filledInForm(after: .signed(Self.user), .signingOut)
    form.report = .failedToSignOut(unsentError)
    #expect(!form.asksToDiscard)
    form.update(.signed(Self.user))
    #expect(form.asksToDiscard)
    // Another screen signs out.
    form.update(.signingOut)
    form.update(.unsigned)
    #expect(!form.asksToDiscard)
    // The sign-out has discarded or sent the changes, so the next sign-in has none to lose.
    form.update(.signingIn)
    form.update(.signed(Self.user))
    #expect(!form.asksToDiscard)
    // A sign-out can also fail for a reason other than unsent changes.
    form.report = .failedToSignOut(Self.error)
    #expect(!form.asksToDiscard)
    #expect(form.submitTitle == "SignOut")
  }

  @Test func `A failed sign-in isn't reported as a sign-out`() {
    #expect(filledInForm(after: .unsigned, .signingIn, .unsigned).message == "")
  }

  @Test func `A sign-out clears the password, and a failed sign-in or sign-out keeps it`() {
    #expect(filledInForm(after: .signed(Self.user), .signingOut, .signed(Self.user)).password == Password("secret"))
    #expect(filledInForm(after: .signed(Self.user), .signingOut, .unsigned).password.isEmpty)
    // The screen missed the state `signingOut`.
    #expect(filledInForm(after: .signed(Self.user), .unsigned).password.isEmpty)
    #expect(filledInForm(after: .unsigned, .signingIn, .unsigned).password == Password("secret"))
  }

  @Test func `Changed input clears a failure`() {
    var form = filledInForm(after: .unsigned)
    form.report = .failedToSignIn(Self.error)
    form.username = "jak"
    // The message says that the username is too short.
    #expect(form.message == "用户名太短, 应该大于4位")
  }
}
