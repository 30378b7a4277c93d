import Testing

@testable import SignIn

@Suite struct SignInFormTests {
  private static let user = SignInSessionStub.user
  private static let error = SignInError.session(.unreachable(reason: "no route"))

  /// Returns a filled-in form that was updated with a series of states.
  private func form(_ states: SignState...) -> SignInForm {
    var form = SignInForm(state: states[0])
    form.username = "jake"
    form.password = Password("secret")
    for state in states.dropFirst() { form.update(state) }
    return form
  }

  @Test func `A failed sign-in is shown, whether its error is reported before or after the state unsigned`() {
    var before = form(.unsigned, .signingIn)
    before.report = .failedToSignIn(Self.error)
    before.update(.unsigned)
    var after = form(.unsigned, .signingIn, .unsigned)
    after.report = .failedToSignIn(Self.error)
    #expect(before == after)
    #expect(before.message == Self.error.description)
    // Here, the failure is reported even before the state `signingIn`.
    var first = form(.unsigned)
    first.report = .failedToSignIn(Self.error)
    first.update(.signingIn)
    first.update(.unsigned)
    #expect(first == after)
  }

  @Test func `A failed sign-out is shown, whether its error is reported before or after the state signed`() {
    var before = form(.signed(Self.user), .signingOut)
    before.report = .failedToSignOut(Self.error)
    before.update(.signed(Self.user))
    var after = form(.signed(Self.user), .signingOut, .signed(Self.user))
    after.report = .failedToSignOut(Self.error)
    #expect(before == after)
    #expect(before.message == Self.error.description)
  }

  @Test func `A failure is cleared when a later call from any screen succeeds`() {
    var signedIn = form(.unsigned)
    signedIn.report = .failedToSignIn(Self.error)
    signedIn.update(.signingIn)
    signedIn.update(.signed(Self.user))
    #expect(signedIn.message == "当前用户: jake\n登录时间: 2018-12-01 12:00:00 +0000")
    signedIn.report = .failedToSignOut(Self.error)
    signedIn.update(.signingOut)
    signedIn.update(.unsigned)
    #expect(signedIn.message == "已经退出登录")
  }

  @Test func `The form asks whether to discard changes only while the user who would lose them is signed in`() {
    let unsent = SignInError.userData(.unsent(2))
    var form = form(.signed(Self.user), .signingOut)
    form.report = .failedToSignOut(unsent)
    #expect(!form.asksToDiscard)
    form.update(.signed(Self.user))
    #expect(form.asksToDiscard)
    // Another screen signs out.
    form.update(.signingOut)
    form.update(.unsigned)
    #expect(!form.asksToDiscard)
    form.update(.signingIn)
    form.update(.signed(Self.user))
    #expect(!form.asksToDiscard)
    form.report = .failedToSignOut(Self.error)
    #expect(!form.asksToDiscard)
    #expect(form.submitTitle == "SignOut")
  }

  @Test func `A failed sign-in isn't reported as a sign-out`() {
    #expect(form(.unsigned, .signingIn, .unsigned).message == "")
  }

  @Test func `A sign-out clears the password, and a failed sign-out keeps it`() {
    #expect(form(.signed(Self.user), .signingOut, .signed(Self.user)).password == Password("secret"))
    #expect(form(.signed(Self.user), .signingOut, .unsigned).password.isEmpty)
    // The screen missed the state `signingOut`.
    #expect(form(.signed(Self.user), .unsigned).password.isEmpty)
    #expect(form(.unsigned, .signingIn, .unsigned).password == Password("secret"))
  }

  @Test func `Changed input clears a failure`() {
    var form = form(.unsigned)
    form.report = .failedToSignIn(Self.error)
    form.username = "jak"
    #expect(form.message == "用户名太短, 应该大于4位")
  }
}
