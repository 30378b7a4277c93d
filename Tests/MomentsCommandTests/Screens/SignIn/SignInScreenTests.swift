import TerminalUI
import TestRounds
import Testing

@testable import MomentsCommand

struct SignInScreenTests {
  private func lines(of model: SignInScreen.Model, _ columns: Int = 80, _ rows: Int = 24) -> [String] {
    SignInScreen.frame(of: model, size: TerminalSize(columns: columns, rows: rows)).lines
  }

  private var signedOutModel: SignInScreen.Model {
    SignInScreen.Model(
      username: "jake", passwordLength: 9, enabled: [.username, .password, .button], focus: .password,
      message: "The username or the password is wrong. Check both, then try again.",
      activity: "state changed: unsigned",
      keys: [KeyHint(key: "esc", action: "quit"), KeyHint(key: "enter", action: "Submit")])
  }

  private var signedInModel: SignInScreen.Model {
    SignInScreen.Model(
      isSignedIn: true, username: "jake", passwordLength: 9, buttonTitle: "SignOut", enabled: [.button], focus: .button,
      message: "当前用户: jake\n登录时间: 2018-12-01 12:00:00 +0000",
      recentSignIns: ["2018-12-01 12:00:00 +0000", "2018-11-30 08:00:00 +0000"], activity: "state changed: signed(jake)"
    )
  }

  @Test func `The sign-in screen fills 80×24`() {
    #expect(
      lines(of: signedOutModel).joined(separator: "\n") == """
         Sign in                                                             signed out
        ────────────────────────────────────────────────────────────────────────────────

           Username  jake
         ▸ Password  •••••••••

           [ Submit ]

           The username or the password is wrong. Check both, then try again.












        ────────────────────────────────────────────────────────────────────────────────
         state changed: unsigned
         esc quit  enter Submit
        """)
  }

  @Test func `The signed-in user, the time of the sign-in and recent sign-ins are below the button`() {
    #expect(
      lines(of: signedInModel)[0...12] == [
        " Sign in                                                              signed in",
        String(repeating: "─", count: 80), "", "   Username  jake", "   Password  •••••••••", "", " ▸ [ SignOut ]", "",
        "   当前用户: jake", "   登录时间: 2018-12-01 12:00:00 +0000", "", "   Recent sign-ins",
        "   2018-12-01 12:00:00 +0000",
      ])
  }

  @Test func `A failure in place of the recent sign-ins is wrapped`() {
    var model = signedInModel
    model.message = ""
    model.recentSignIns = ["The server could not be reached (timed out). Check the connection, then try again."]
    #expect(
      lines(of: model, 40)[8...12] == [
        "", "   Recent sign-ins", "   The server could not be reached", "   (timed out). Check the connection,",
        "   then try again.",
      ])
  }

  @Test func `A busy screen says so in its title line and beside its button`() {
    var model = signedOutModel
    model.isBusy = true
    model.enabled = []
    model.focus = nil
    model.message = ""
    let lines = lines(of: model)
    #expect(lines[0].hasSuffix("busy"))
    #expect(
      lines[3...8] == ["   Username  jake", "   Password  •••••••••", "", "   [ Submit ]  asking the server…", "", ""])
  }

  @Test func `A small terminal shows no blank lines`() {
    #expect(
      lines(of: signedOutModel, 40, 10)[2..<7] == [
        "   Username  jake", " ▸ Password  •••••••••", "   [ Submit ]", "   The username or the password is",
        "   wrong. Check both, then try again.",
      ])
  }

  @Test func `The cursor is where the next character goes, and a focused button is highlighted`() {
    let inverseColumns = { (model: SignInScreen.Model, row: Int) in
      SignInScreen.frame(of: model, size: TerminalSize(columns: 80, rows: 24))[row: row].enumerated()
        .filter { $0.element.style.attributes == .inverse }.map(\.offset)
    }
    #expect(inverseColumns(signedOutModel, 4) == [22])
    #expect(inverseColumns(signedOutModel, 3) == [])
    #expect(inverseColumns(signedOutModel, 6) == [])
    #expect(inverseColumns(signedInModel, 6) == Array(3..<14))
  }

  @Test func `At every size, no line of the sign-in screen is wider than the terminal`() {
    for model in [signedOutModel, signedInModel] {
      for columns in stride(from: 0, to: 100, by: Rounds.step(3)) {
        for rows in [0, 1, 9, 10, 15, 16, 24] {
          #expect(lines(of: model, columns, rows).allSatisfy { TerminalText.width(of: $0) <= columns })
        }
      }
    }
  }
}
