import DataStore
import Foundation
import Moments
import TerminalUI
import TestSupport
import Testing

@testable import MomentsCommand

@MainActor
@Suite(.timeLimit(.minutes(15))) struct SignInCommandTests {
  @Test func `The script signs two users in and out, and prints what the screen shows`() async {
    let recorder = ConsoleRecorder()
    #expect(await SignInCommand(console: recorder.console).run() == .success)
    #expect(recorder.errors == [])
    #expect(
      recorder.output == [
        "state changed: unsigned",
        "username: enabled, password: disabled, Submit: disabled",
        "请填写用户名",
        "",
        "Username: jak",
        "username: enabled, password: disabled, Submit: disabled",
        "用户名太短, 应该大于4位",
        "",
        "Username: jake",
        "username: enabled, password: enabled, Submit: disabled",
        "请填写密码",
        "",
        "Password: <redacted>",
        "username: enabled, password: enabled, Submit: enabled",
        "",
        "Submit",
        "state changed: signingIn",
        "Busy: the indicator is shown, and the message is hidden. A second Submit is ignored.",
        "state changed: unsigned",
        "username: enabled, password: enabled, Submit: enabled",
        "The username or the password is wrong. Check both, then try again.",
        "",
        "Password: <redacted>",
        "username: enabled, password: enabled, Submit: enabled",
        "",
        "Submit",
        "state changed: signingIn",
        "Busy: the indicator is shown, and the message is hidden. A second Submit is ignored.",
        "state changed: signed(jake)",
        "username: disabled, password: disabled, SignOut: enabled",
        "当前用户: jake",
        "登录时间: 2018-12-01 12:00:00 +0000",
        "",
        "Recent sign-ins",
        "2018-12-01 12:00:00 +0000",
        "",
        "Timeline of Jake Lin: 16 moments",
        "Timelines stored on this device: 1",
        "",
        "The network is down.",
        "Like Mattt: Low-level programming on iOS: queued",
        "",
        // This sign-out is refused without asking the sign-in server, so the script doesn't press the button again
        // during it, and no line about a second press follows.
        "SignOut",
        "state changed: signingOut",
        "state changed: signed(jake)",
        "username: disabled, password: disabled, Discard and SignOut: enabled",
        "The server doesn't have 1 of your changes. Let it be sent, or sign out without it.",
        "",
        "Discard and SignOut",
        "state changed: signingOut",
        "Busy: the indicator is shown, and the message is hidden. A second Discard and SignOut is ignored.",
        "state changed: unsigned",
        "username: enabled, password: enabled, Submit: disabled",
        "已经退出登录",
        "",
        "The network is back.",
        "",
        "Username: mei-zhou",
        "username: enabled, password: enabled, Submit: disabled",
        "请填写密码",
        "",
        "Password: <redacted>",
        "username: enabled, password: enabled, Submit: enabled",
        "",
        "Submit",
        "state changed: signingIn",
        "Busy: the indicator is shown, and the message is hidden. A second Submit is ignored.",
        "state changed: signed(mei-zhou)",
        "username: disabled, password: disabled, SignOut: enabled",
        "当前用户: mei-zhou",
        "登录时间: 2018-12-01 12:00:00 +0000",
        "",
        "Timeline of Mei Zhou: 3 moments",
        "Timelines stored on this device: 1",
        "",
        "SignOut",
        "state changed: signingOut",
        "Busy: the indicator is shown, and the message is hidden. A second SignOut is ignored.",
        "state changed: unsigned",
        "username: enabled, password: enabled, Submit: disabled",
        "已经退出登录",
      ])
  }

  @Test func `The time of a sign-in comes from the injected clock`() async {
    let recorder = ConsoleRecorder()
    let command = SignInCommand(console: recorder.console, now: { Date(timeIntervalSince1970: 0) })
    #expect(await command.run() == .success)
    #expect(recorder.output.contains("登录时间: 1970-01-01 00:00:00 +0000"))
  }

  @Test func `A scripted session with a data folder leaves no user's timeline behind`() async throws {
    let recorder = ConsoleRecorder()
    let folder = TemporaryFolder()
    for _ in 0..<2 {
      #expect(await SignInCommand(dataFolder: folder.url, console: recorder.console).run() == .success)
    }
    #expect(recorder.errors == [])
    // Each run signs in two users, one after the other, and the device stores only the timeline of the current one.
    #expect(recorder.output.filter { $0.hasPrefix("Timelines stored") }.count { $0.hasSuffix(": 1") } == 4)
    let remainingTimelines = try await PersistentDataStore(FileStore(folder: folder.url)).observeMomentsDetails().stored
    #expect(remainingTimelines.map(\.key.id) == [])
  }

  @Test(arguments: [("\u{3}", CommandStatus.interrupted), ("\u{1B}\u{1B}", .success)])
  func `In a terminal, the sign-in screen is live until the user leaves`(keys: String, expected: CommandStatus) async {
    let recorder = ConsoleRecorder()
    let terminal = FakeTerminal()
    let folder = TemporaryFolder()
    async let status = SignInCommand(dataFolder: folder.url, console: recorder.console, terminal: terminal).run()
    let lines = await terminal.lines { $0[0].hasSuffix("signed out") }
    #expect(lines[22] == " Demo accounts (username/password): jake/low-level, mei-zhou/sunscreen.")
    // The keys are Ctrl-C, or Escape twice. The second Escape shows that the first one starts no sequence.
    terminal.type(keys)
    #expect(await status == expected)
    #expect(recorder.output + recorder.errors == [])
  }
}
