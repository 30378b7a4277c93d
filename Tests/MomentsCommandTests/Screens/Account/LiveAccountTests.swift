import DataStore
import Foundation
import Moments
import SignIn
import TerminalUI
import TestSupport
import Testing

@testable import MomentsCommand

@MainActor @Suite(.timeLimit(.minutes(15))) struct LiveAccountTests {
  nonisolated private static let noon = Date(timeIntervalSince1970: 1_605_528_000)

  /// A terminal of 24 lines: the header (0), the body (2 to 20), the latest activity (22) and the key hints (23).
  private let terminal = FakeTerminal()
  private let folder = TemporaryFolder()

  /// Runs a live account screen during `body`, then leaves the screen with Escape.
  ///
  /// A timeline ignores Escape, so `body` must close it. The demonstration stores its data in ``folder``.
  private func withLiveAccount(
    _ body: (FakeTerminal, UserService, Demonstration) async throws -> Void
  ) async throws {
    let demonstration = try await Demonstration.open(
      PersistentDataStore(FileStore(folder: folder.url.appending(path: "device"), now: { Self.noon })),
      serverStore: FileStore(folder: folder.url.appending(path: "server")))
    let signInSession = InMemorySignInSession(
      accounts: [
        .init(uid: "0", username: "jake", password: Password("low-level")),
        .init(uid: "1", username: "mei-zhou", password: Password("sunscreen")),
      ], now: { Self.noon })
    let service = UserService(
      session: signInSession, userData: [MomentsUserData(repo: demonstration.repo, sendingTime: .zero)])
    let screen = LiveAccount(
      service: service, hint: "Hello.",
      makeTimeline: { userID in
        LiveTimeline(
          userID: userID, repo: demonstration.repo, network: demonstration.network,
          isOnline: demonstration.network.isOnline, quitAction: "account", now: { Self.noon },
          pause: { _ in
            // Longer than a test, so the ages are never updated.
            try await Task.sleep(for: .seconds(1_000))
          })
      })
    let screenSession = ScreenSession(of: screen, on: terminal, pause: { _ in })
    async let ending = screenSession.run()
    _ = await terminal.lines { $0[22] == " Hello." }
    try await body(terminal, service, demonstration)
    terminal.type("\u{1B}")
    #expect(await ending == .quit)
  }

  /// Signs a user in, and waits until the screen shows the recent sign-ins.
  ///
  /// - Parameter keys: The keys that focus and clear the field of the username.
  private func signIn(_ username: String, _ password: String, afterTyping keys: String = "") async {
    _ = await terminal.lines(afterTyping: "\(keys)\(username)\t\(password)\r") {
      $0[0].hasSuffix("signed in") && $0[22] == " state changed: signed(\(username))"
        && $0.contains("   Recent sign-ins")
    }
  }

  /// Returns the paths in the `device` folder that contain a text, or lead to a file that contains it.
  private func files(mentioning text: String) throws -> [String] {
    try folder.files(mentioning: text).filter { $0.hasPrefix("device/") }
  }

  @Test func `The timeline belongs to the signed-in user, and the key q returns to the account screen`() async throws {
    try await withLiveAccount { terminal, _, _ in
      // While no user is signed in, the key `t` types a letter, which Backspace deletes.
      let typing = await terminal.lines(afterTyping: "t") { $0[3] == " ▸ Username  t" }
      #expect(typing[23] == " esc quit  ^U clear the field")
      terminal.type("\u{7F}")
      await signIn("jake", "low-level")
      let timeline = await terminal.lines(afterTyping: "t") { $0[22] == " The timeline is up to date." }
      #expect(timeline[0].hasPrefix(" Jake Lin  16 moments · 30 likes"))
      #expect(timeline[23].hasPrefix(" q account  j/k ↓/↑ move  l unlike  o go offline"))
      let account = await terminal.lines(afterTyping: "q") { $0[0].hasSuffix("signed in") }
      #expect(account[23] == " esc quit  enter SignOut  t timeline")
    }
  }

  @Test func `A sign-out warns of pending likes, and the next user sees no data of the previous one`() async throws {
    let momentTitle = "Low-level programming on iOS"
    try await withLiveAccount { terminal, service, demonstration in
      await signIn("jake", "low-level")
      _ = await terminal.lines(afterTyping: "t") { $0[22] == " The timeline is up to date." }
      _ = await terminal.lines(afterTyping: "o") { $0[0].hasSuffix("offline") }
      // The key only requests that the network goes offline. Another task switches it.
      while demonstration.network.isOnline { await Task.yield() }
      _ = await terminal.lines(afterTyping: "jl") { $0[22].hasPrefix(" Queued to be sent later: like Mattt") }
      _ = await terminal.lines(afterTyping: "jjl") { $0[22].hasPrefix(" Queued to be sent later: like Ravi") }
      _ = await terminal.lines(afterTyping: "q") { $0[0].hasSuffix("signed in") }
      #expect(try files(mentioning: momentTitle) != [])

      let warning = await terminal.lines(afterTyping: "\r") { $0[6] == " ▸ [ Discard and SignOut ]" }
      #expect(
        warning[8...9] == [
          "   The server doesn't have 2 of your changes. Let them be sent, or sign out", "   without them.",
        ])
      #expect(warning[23] == " esc stay signed in  enter Discard and SignOut  t timeline")
      // Escape dismisses the warning, and the user stays signed in.
      let stillSignedIn = await terminal.lines(afterTyping: "\u{1B}") { $0[6] == " ▸ [ SignOut ]" }
      #expect(stillSignedIn[8] == "   当前用户: jake")
      // Nothing was lost: the timeline still has both pending likes.
      let pending = await terminal.lines(afterTyping: "t") { $0[0].contains("2 pending") }
      #expect(pending[0].hasPrefix(" Jake Lin  16 moments · 32 likes"))
      _ = await terminal.lines(afterTyping: "q") { $0[0].hasSuffix("signed in") }

      _ = await terminal.lines(afterTyping: "\r") { $0[6] == " ▸ [ Discard and SignOut ]" }
      _ = await terminal.lines(afterTyping: "\r") {
        $0[0].hasSuffix("signed out") && $0[22] == " state changed: unsigned"
      }
      #expect(service.signState == .unsigned)
      #expect(try files(mentioning: momentTitle) == [])
      // No file has the id of the signed-out user as a JSON string either.
      #expect(try files(mentioning: "\"0\"") == [])

      try await demonstration.network.setOnline(true)
      // The password field has the focus. Shift-Tab focuses the username field, which still contains the first user's
      // name, and ^U clears it.
      await signIn("mei-zhou", "sunscreen", afterTyping: "\u{1B}[Z\u{15}")
      let timeline = await terminal.lines(afterTyping: "t") { $0[22] == " The timeline is up to date." }
      #expect(timeline[0].hasPrefix(" Mei Zhou  3 moments · 4 likes"))
      #expect(timeline[0].contains("pending") == false)
      let frames = terminal.allFrames
      let signOutIndex = try #require(frames.firstIndex { $0[8] == "   已经退出登录" })
      let linesSinceSignOut = frames[signOutIndex...].flatMap(\.self)
      #expect(linesSinceSignOut.filter { $0.contains("Low-level") || $0.contains("16 moments") } == [])
      var savedTimelines = demonstration.repo.momentsDetails.makeAsyncIterator()
      #expect(await savedTimelines.next()?.userDetails.id == "1")
      terminal.type("q")
    }
  }

  @Test func `A sign-out by another caller closes the timeline`() async throws {
    try await withLiveAccount { terminal, service, _ in
      await signIn("jake", "low-level")
      _ = await terminal.lines(afterTyping: "t") { $0[22] == " The timeline is up to date." }
      try await service.performSignout()
      let closed = await terminal.lines { $0[0].hasSuffix("signed out") && $0[22] == " state changed: unsigned" }
      #expect(closed[8] == "   已经退出登录")
    }
  }
}
