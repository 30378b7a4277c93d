import Foundation
import SignIn
import TerminalUI
import Testing

@testable import MomentsCommand

struct LiveSignInStateTests {
  /// Holds the state in a class, so that expectations can change it.
  private final class Screen {
    private(set) var state = LiveSignInState(hint: "Hello.")

    @discardableResult
    func press(_ key: Key, in form: LiveSignInState.Form) -> LiveSignInState.Request? { state.press(key, in: form) }

    /// Records a change of the sign-in state, and returns whether it loads the recent sign-ins.
    func loadsRecentSignIns(afterChangeTo signState: SignState) -> Bool { state.signStateChanged(to: signState) }

    func submitEnded() { state.submitEnded() }

    func model(of form: LiveSignInState.Form) -> SignInScreen.Model { state.model(of: form) }
  }

  private let screen = Screen()
  private let emptyForm = LiveSignInState.Form(isUsernameEnabled: true)
  private let filledForm = LiveSignInState.Form(
    username: "jake", password: Password("low"), isUsernameEnabled: true, isPasswordEnabled: true, isSubmitEnabled: true
  )

  @Test func `Typed text goes to the focused field`() {
    #expect(screen.press(.character("j"), in: emptyForm) == .setUsername("j"))
    #expect(screen.press(.tab, in: filledForm) == nil)
    #expect(screen.press(.character("!"), in: filledForm) == .setPassword(Password("low!")))
    #expect(screen.press(.tab, in: filledForm) == nil)
    #expect(screen.press(.character("x"), in: filledForm) == nil)
  }

  @Test func `The focus cycles through the enabled controls`() {
    var focusedControls: [SignInScreen.Control?] = []
    for key in [Key.tab, .down, .tab, .backTab, .up] {
      screen.press(key, in: filledForm)
      focusedControls.append(screen.model(of: filledForm).focus)
    }
    #expect(focusedControls == [.password, .button, .username, .button, .password])
    // While only the username is enabled, it has the focus. The focus returns to the password when that is enabled.
    #expect(screen.model(of: emptyForm).focus == .username)
    #expect(screen.model(of: filledForm).focus == .password)
    #expect(screen.model(of: LiveSignInState.Form()).focus == nil)
  }

  @Test func `Enter moves to the password, and submits from there`() {
    #expect(screen.press(.enter, in: filledForm) == nil)
    #expect(screen.model(of: filledForm).focus == .password)
    #expect(screen.press(.enter, in: filledForm) == .submit)
  }

  @Test func `While a submission is in flight, all keys except Escape are ignored`() {
    screen.press(.tab, in: filledForm)
    #expect(screen.press(.enter, in: filledForm) == .submit)
    #expect(screen.press(.enter, in: filledForm) == nil)
    #expect(screen.press(.character("x"), in: filledForm) == nil)
    #expect(screen.press(.escape, in: filledForm) == .quit)
    screen.submitEnded()
    #expect(screen.press(.character("x"), in: filledForm) == .setPassword(Password("lowx")))
  }

  @Test func `While the screen asks whether to discard changes, Escape keeps them`() {
    var form = LiveSignInState.Form(isSubmitEnabled: true, submitTitle: "Discard and SignOut", asksToDiscard: true)
    #expect(
      screen.model(of: form).keys == [
        KeyHint(key: "esc", action: "stay signed in"), KeyHint(key: "enter", action: "Discard and SignOut"),
      ])
    #expect(screen.press(.escape, in: form) == .keepChanges)
    #expect(screen.press(.enter, in: form) == .submit)
    screen.submitEnded()
    form.asksToDiscard = false
    #expect(screen.press(.escape, in: form) == .quit)
  }

  @Test func `While a user is signed in, the hints include the keys that an enclosing screen handles`() {
    let state = LiveSignInState(hint: "Hello.", signedInKeys: [KeyHint(key: "t", action: "timeline")])
    #expect(state.model(of: emptyForm).keys.map(\.key) == ["esc", "^U"])
    let signedInForm = LiveSignInState.Form(isSubmitEnabled: true, submitTitle: "SignOut")
    #expect(state.model(of: signedInForm).keys.map(\.key) == ["esc", "enter", "t"])
  }

  @Test func `Each change of the sign-in state is shown, and a sign-in loads the recent sign-ins`() {
    #expect(screen.state.activity == "Hello.")
    #expect(!screen.loadsRecentSignIns(afterChangeTo: .signingIn))
    #expect(screen.state.activity == "state changed: signingIn")
    let user = User(uid: "007", username: "jake", date: Date(timeIntervalSince1970: 0))
    #expect(screen.loadsRecentSignIns(afterChangeTo: .signed(user)))
    #expect(screen.state.activity == "state changed: signed(jake)")
  }

  @Test func `Only the length of the password is shown, and recent sign-ins only while a user is signed in`() {
    var form = filledForm
    form.recentSignIns = ["yesterday"]
    #expect(screen.model(of: form).passwordLength == 3)
    #expect(screen.model(of: form).recentSignIns == [])
    // The username is disabled while a user is signed in, and also while a request is in flight.
    form.isUsernameEnabled = false
    #expect(screen.model(of: form).recentSignIns == ["yesterday"])
    form.isBusy = true
    #expect(screen.model(of: form).recentSignIns == [])
  }

  @Test func `The hints depend on the enabled controls and on the focus`() {
    #expect(screen.model(of: emptyForm).keys.map(\.key) == ["esc", "^U"])
    screen.press(.tab, in: filledForm)
    #expect(screen.model(of: filledForm).keys.map(\.key) == ["esc", "tab", "enter", "^U"])
    screen.press(.tab, in: filledForm)
    #expect(screen.model(of: filledForm).keys.map(\.key) == ["esc", "tab", "enter"])
  }
}
