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

    func signStateChanged(to signState: SignState) -> Bool { state.signStateChanged(to: signState) }

    func submitEnded() { state.submitEnded() }

    func model(of form: LiveSignInState.Form) -> SignInScreen.Model { state.model(of: form) }
  }

  private let screen = Screen()
  private let empty = LiveSignInState.Form(isUsernameEnabled: true)
  private let filled = LiveSignInState.Form(
    username: "jake", password: Password("low"), isUsernameEnabled: true, isPasswordEnabled: true, isSubmitEnabled: true
  )

  @Test func `Typed text goes to the focused field`() {
    #expect(screen.press(.character("j"), in: empty) == .setUsername("j"))
    #expect(screen.press(.tab, in: filled) == nil)
    #expect(screen.press(.character("!"), in: filled) == .setPassword(Password("low!")))
    #expect(screen.press(.tab, in: filled) == nil)
    #expect(screen.press(.character("x"), in: filled) == nil)
  }

  @Test func `The focus cycles through the enabled controls`() {
    var focuses: [SignInScreen.Control?] = []
    for key in [Key.tab, .down, .tab, .backTab, .up] {
      screen.press(key, in: filled)
      focuses.append(screen.model(of: filled).focus)
    }
    #expect(focuses == [.password, .button, .username, .button, .password])
    // While only the username is enabled, it has the focus.
    #expect(screen.model(of: empty).focus == .username)
    #expect(screen.model(of: filled).focus == .password)
    #expect(screen.model(of: LiveSignInState.Form()).focus == nil)
  }

  @Test func `Enter moves to the password, and submits from there`() {
    #expect(screen.press(.enter, in: filled) == nil)
    #expect(screen.model(of: filled).focus == .password)
    #expect(screen.press(.enter, in: filled) == .submit)
  }

  @Test func `Keys except Escape are ignored until a submission is answered`() {
    screen.press(.tab, in: filled)
    #expect(screen.press(.enter, in: filled) == .submit)
    #expect(screen.press(.enter, in: filled) == nil)
    #expect(screen.press(.character("x"), in: filled) == nil)
    #expect(screen.press(.escape, in: filled) == .quit)
    screen.submitEnded()
    #expect(screen.press(.character("x"), in: filled) == .setPassword(Password("lowx")))
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

  @Test func `Hints for keys that an enclosing screen handles are shown while a user is signed in`() {
    let state = LiveSignInState(hint: "Hello.", signedInKeys: [KeyHint(key: "t", action: "timeline")])
    #expect(state.model(of: empty).keys.map(\.key) == ["esc", "^U"])
    let signedIn = LiveSignInState.Form(isSubmitEnabled: true, submitTitle: "SignOut")
    #expect(state.model(of: signedIn).keys.map(\.key) == ["esc", "enter", "t"])
  }

  @Test func `Each change of the sign-in state is shown, and a sign-in loads the recent sign-ins`() {
    #expect(screen.state.activity == "Hello.")
    #expect(!screen.signStateChanged(to: .signingIn))
    #expect(screen.state.activity == "state changed: signingIn")
    let user = User(uid: "007", username: "jake", date: Date(timeIntervalSince1970: 0))
    #expect(screen.signStateChanged(to: .signed(user)))
    #expect(screen.state.activity == "state changed: signed(jake)")
  }

  @Test func `Only the length of the password is shown, and recent sign-ins only while a user is signed in`() {
    var form = filled
    form.recentSignIns = ["yesterday"]
    #expect(screen.model(of: form).passwordLength == 3)
    #expect(screen.model(of: form).recentSignIns == [])
    form.isUsernameEnabled = false
    #expect(screen.model(of: form).recentSignIns == ["yesterday"])
    form.isBusy = true
    #expect(screen.model(of: form).recentSignIns == [])
  }

  @Test func `Hints are shown only for keys that have an effect`() {
    #expect(screen.model(of: empty).keys.map(\.key) == ["esc", "^U"])
    screen.press(.tab, in: filled)
    #expect(screen.model(of: filled).keys.map(\.key) == ["esc", "tab", "enter", "^U"])
    screen.press(.tab, in: filled)
    #expect(screen.model(of: filled).keys.map(\.key) == ["esc", "tab", "enter"])
  }
}
