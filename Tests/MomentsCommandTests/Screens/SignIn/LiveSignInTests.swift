import Foundation
import MulticastTesting
import SignIn
import Synchronization
import TerminalUI
import TestSupport
import Testing

@testable import MomentsCommand

@MainActor @Suite(.timeLimit(.minutes(15))) struct LiveSignInTests {
  /// A terminal of 24 lines: the header (0), the body (2 to 20), the latest activity (22) and the key hints (23).
  private let terminal = FakeTerminal()
  private let answerGate = Gate()

  /// Runs a live sign-in screen during `body`, then leaves the screen.
  ///
  /// - Parameter immediateAnswerCount: The number of answers that don't wait for the gate. All later ones do.
  private func withLiveSignIn(immediateAnswerCount: Int = 0, _ body: (FakeTerminal) async -> Void) async {
    let answerCount = Atomic(0)
    let signInSession = InMemorySignInSession(
      accounts: [.init(uid: "007", username: "jake", password: Password("low-level"))],
      now: { Date(timeIntervalSince1970: 1_543_665_600) },
      answering: { [answerGate] in
        if answerCount.add(1, ordering: .relaxed).oldValue >= immediateAnswerCount { await answerGate.pass() }
      })
    let screen = LiveSignIn(service: UserService(session: signInSession), hint: "Try jake.")
    let screenSession = ScreenSession(of: screen, on: terminal, pause: { _ in })
    async let ending = screenSession.run()
    await body(terminal)
    terminal.type("\u{1B}")
    #expect(await ending == .quit)
  }

  @Test func `The username has the focus first, and each character updates the message about missing input`() async {
    await withLiveSignIn { terminal in
      let empty = await terminal.lines { $0[0].hasSuffix("signed out") }
      #expect(empty[3...8] == [" ▸ Username", "   Password", "", "   [ Submit ]", "", "   请填写用户名"])
      #expect(empty[22...23] == [" Try jake.", " esc quit  ^U clear the field"])
      let tooShort = await terminal.lines(afterTyping: "jak") { $0[3] == " ▸ Username  jak" }
      #expect(tooShort[8] == "   用户名太短, 应该大于4位")
      // Tab and Enter do nothing, because no other control is enabled.
      terminal.type("\t\r")
      let longEnough = await terminal.lines(afterTyping: "e") { $0[3] == " ▸ Username  jake" }
      #expect(longEnough[8] == "   请填写密码")
      #expect(longEnough[23] == " esc quit  tab next  ^U clear the field")
    }
  }

  @Test func `A wrong password is reported, the right one signs in, and the button signs out`() async {
    answerGate.open()
    await withLiveSignIn { terminal in
      _ = await terminal.lines { $0[0].hasSuffix("signed out") }
      let ready = await terminal.lines(afterTyping: "jake\rguess") { $0[4] == " ▸ Password  •••••" }
      #expect(ready[8] == "")
      #expect(ready[23] == " esc quit  tab next  enter Submit  ^U clear the field")
      let wrong = await terminal.lines(afterTyping: "\r") {
        $0[8].hasPrefix("   The username or the password is wrong.")
      }
      #expect(wrong[4] == " ▸ Password  •••••")
      _ = await terminal.lines(afterTyping: "\u{15}low-level") { $0[4] == " ▸ Password  •••••••••" }
      let signedIn = await terminal.lines(afterTyping: "\r") { $0[12].hasPrefix("   2018-12-01") }
      #expect(
        signedIn[3...12] == [
          "   Username  jake", "   Password  •••••••••", "", " ▸ [ SignOut ]", "", "   当前用户: jake",
          "   登录时间: 2018-12-01 12:00:00 +0000", "", "   Recent sign-ins", "   2018-12-01 12:00:00 +0000",
        ])
      #expect(signedIn[22] == " state changed: signed(jake)")
      #expect(signedIn[23] == " esc quit  enter SignOut")
      // The letter q has no effect while the button has the focus.
      let signedOut = await terminal.lines(afterTyping: "q\r") { $0[8] == "   已经退出登录" && $0[22].hasSuffix("unsigned") }
      #expect(signedOut[0].hasSuffix("signed out"))
      // The password was cleared and has the focus, so another Enter wouldn't sign in again.
      #expect(signedOut[4] == " ▸ Password")
    }
    let shownLines = terminal.allFrames.flatMap(\.self)
    #expect(!shownLines.contains { $0.contains("guess") || $0.contains("low-level") })
  }

  @Test func `During a request, the indicator is shown, the message is hidden, and only Escape has an effect`() async {
    await withLiveSignIn { terminal in
      _ = await terminal.lines { $0[0].hasSuffix("signed out") }
      let busy = await terminal.lines(afterTyping: "jake\rlow-level\r") {
        $0[0].hasSuffix("busy") && $0[22].hasSuffix("signingIn")
      }
      #expect(
        busy[3...8] == ["   Username  jake", "   Password  •••••••••", "", "   [ Submit ]  asking the server…", "", ""])
      #expect(busy[23] == " esc quit")
      terminal.type("\r\tmore\u{7F}\r")
      answerGate.open()
      let signedIn = await terminal.lines { $0[12].hasPrefix("   2018-12-01") }
      // There was only one sign-in, and the keys changed no field.
      #expect(signedIn[3...4] == ["   Username  jake", "   Password  •••••••••"])
      #expect(signedIn[13] == "")
    }
  }

  @Test func `Keys after Enter do not change the submitted form`() async {
    answerGate.open()
    await withLiveSignIn { terminal in
      _ = await terminal.lines { $0[0].hasSuffix("signed out") }
      terminal.type("jake\tlow-level\rx\r")
      let answered = await terminal.lines { $0[12].hasPrefix("   2018-12-01") || $0[8].contains("wrong") }
      #expect(answered[4] == "   Password  •••••••••")
      #expect(answered[8] == "   当前用户: jake")
    }
  }

  @Test func `Tab and arrow keys cycle through the enabled controls`() async {
    await withLiveSignIn { terminal in
      _ = await terminal.lines { $0[0].hasSuffix("signed out") }
      _ = await terminal.lines(afterTyping: "jake\rp") { $0[4] == " ▸ Password  •" }
      _ = await terminal.lines(afterTyping: "\t") { $0[6] == " ▸ [ Submit ]" }
      _ = await terminal.lines(afterTyping: "\t") { $0[3] == " ▸ Username  jake" }
      // Shift-Tab, then the arrow keys up and down.
      _ = await terminal.lines(afterTyping: "\u{1B}[Z") { $0[6] == " ▸ [ Submit ]" }
      _ = await terminal.lines(afterTyping: "\u{1B}[A") { $0[4] == " ▸ Password  •" }
      _ = await terminal.lines(afterTyping: "\u{1B}[B") { $0[6] == " ▸ [ Submit ]" }
    }
  }

  @Test func `A sign-out is shown while the recent sign-ins are still loading`() async {
    await withLiveSignIn(immediateAnswerCount: 1) { terminal in
      _ = await terminal.lines { $0[0].hasSuffix("signed out") }
      _ = await terminal.lines(afterTyping: "jake\rlow-level\r") { $0[22] == " state changed: signed(jake)" }
      // The server has received the request for the recent sign-ins.
      await answerGate.arrivals()
      // The header and the activity line observe the state independently, so either may change first.
      let busy = await terminal.lines(afterTyping: "\r") {
        $0[0].hasSuffix("busy") && $0[22] == " state changed: signingOut"
      }
      #expect(busy != [])
    }
  }

  @Test func `The user can leave during a request`() async {
    await withLiveSignIn { terminal in
      _ = await terminal.lines { $0[0].hasSuffix("signed out") }
      _ = await terminal.lines(afterTyping: "jake\rlow-level\r") { $0[0].hasSuffix("busy") }
    }
  }
}
