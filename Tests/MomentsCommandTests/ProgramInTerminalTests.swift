import Foundation
import Multicast
import TestSupport
import Testing
import ThreadSanitizerSuppressions

@testable import TerminalUI

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// Tests the whole program in a terminal, which the program must restore.
@Suite(.timeLimit(.minutes(15)), .serialized) struct ProgramInTerminalTests {
  /// The output that restores a terminal, with `E` for the escape character, as in `PseudoTerminal.output(upTo:)`.
  private static let restoration = TerminalRestoration.sequence.replacing("\u{1B}", with: "E")

  private final class BundleToken {}

  /// The URL of the program, which is beside the test executable or beside the test bundle; `nil` if it isn't there.
  static let program = {
    let folder = Bundle(for: BundleToken.self).bundleURL
    let candidates = [folder, folder.deletingLastPathComponent()].map { $0.appending(path: "moments") }
    return candidates.first { FileManager.default.isExecutableFile(atPath: $0.path()) }
  }()

  /// Starts the program in a terminal, and waits until it has loaded the timeline.
  ///
  /// - Parameter launcher: The command that starts the program; empty to start it directly.
  private func start(in terminal: PseudoTerminal, data: URL, launcher: [String]) async throws -> Process {
    let process = Process()
    let program: URL = try #require(Self.program)
    let command = launcher + [program.path(), "--data", data.path()]
    process.executableURL = URL(filePath: command[0])
    process.arguments = Array(command.dropFirst())
    process.environment = [
      "TERM": "xterm-256color", "SWIFT_BACKTRACE": "enable=no", "TSAN_OPTIONS": try sanitizerOptions(in: data),
    ]
    process.standardInput = terminal.handle
    process.standardOutput = terminal.handle
    // The program would inherit that the tests ignore interrupts in the background job of a script, or hang-ups under
    // `nohup`.
    _ = signal(SIGINT, SIG_DFL)
    _ = signal(SIGHUP, SIG_DFL)
    try process.run()
    _ = await terminal.output(upTo: "up to date")
    return process
  }

  /// Returns the options for the thread sanitizer, in case the program was built with it.
  ///
  /// The suppressions come from the tests, because the program contains none. The options leave the signals of a crash
  /// to the program; otherwise, the sanitizer would handle these signals.
  private func sanitizerOptions(in folder: URL) throws -> String {
    let suppressions = folder.appending(path: "suppressions")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(String(cString: __tsan_default_suppressions()).utf8).write(to: suppressions)
    let signalOptions = ["segv", "sigbus", "sigill", "sigtrap", "sigfpe", "abort"].map { "handle_\($0)=0" }
    return (signalOptions + ["suppressions=\(suppressions.path())"]).joined(separator: ":")
  }

  /// Runs the program in a terminal, and checks that the terminal is restored when the program has ended.
  private func withProgram(
    launcher: [String] = [], _ body: (PseudoTerminal, Process) async throws -> Void
  ) async throws {
    let folder = TemporaryFolder()
    let terminal = try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24))
    let originalModes = try terminal.modes()
    let process = try await start(in: terminal, data: folder.url, launcher: launcher)
    #expect(try terminal.modes() != originalModes)
    try await body(terminal, process)
    process.waitUntilExit()
    #expect(try terminal.modes() == originalModes)
    // Ends the output, so that the next line fails if the sequence is missing, instead of waiting for it.
    terminal.hangUp()
    #expect(await terminal.output(upTo: TerminalRestoration.sequence).hasSuffix(Self.restoration))
    terminal.close()
  }

  private static let downKey = "\u{1B}[B"

  @Test func `The program restores the terminal when the user quits`() async throws {
    try await withProgram { terminal, process in
      terminal.type(Self.downKey + "q")
      process.waitUntilExit()
      #expect(process.terminationReason == .exit)
      #expect(process.terminationStatus == 0)
    }
  }

  @Test func `The program restores the terminal at Ctrl-C`() async throws {
    try await withProgram { terminal, process in
      terminal.type("\u{3}")
      process.waitUntilExit()
      // The program reads Ctrl-C as a key. The status is 128 plus the number of SIGINT, as in shells.
      #expect(process.terminationStatus == 130)
    }
  }

  @Test func `A signal ends the program even if its terminal accepts no output`() async throws {
    let folder = TemporaryFolder()
    let terminal = try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24))
    let originalModes = try terminal.modes()
    let process = try await start(in: terminal, data: folder.url, launcher: [])
    try terminal.stall()
    // Makes the program draw, which blocks.
    kill(process.processIdentifier, SIGWINCH)
    kill(process.processIdentifier, SIGTERM)
    process.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal)
    #expect(process.terminationStatus == SIGTERM)
    #expect(try terminal.modes() == originalModes)
    terminal.resume()
    terminal.hangUp()
    terminal.close()
  }

  /// The end of the output that restores the terminal, and the start of the output that takes it over again.
  private static let resumption = "\u{1B}[?1049l\u{1B}[?1049h"

  @Test func `The program restores the terminal when stopped, and takes it over again when continued`() async throws {
    try await withProgram { terminal, process in
      let takenOverModes = try terminal.modes()
      kill(process.processIdentifier, SIGTSTP)
      var info = siginfo_t()
      #expect(waitid(P_PID, id_t(process.processIdentifier), &info, WSTOPPED | WNOWAIT) == 0)
      #expect(try terminal.modes() != takenOverModes)
      kill(process.processIdentifier, SIGCONT)
      _ = await terminal.output(upTo: Self.resumption)
      terminal.type("q")
      process.waitUntilExit()
      #expect(process.terminationReason == .exit)
      #expect(process.terminationStatus == 0)
    }
  }

  @Test func `When the program that sends likes is killed, another one on the same folder sends them`() async throws {
    let folder = TemporaryFolder()
    let (leaderTerminal, followerTerminal) = (
      try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24)),
      try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24))
    )
    let leader = try await start(in: leaderTerminal, data: folder.url, launcher: [])
    let follower = try await start(in: followerTerminal, data: folder.url, launcher: [])
    // The leader sends this like, and shows it as pending until the server has confirmed it. The output is empty only
    // if a program ended before.
    followerTerminal.type(Self.downKey + "l")
    #expect(await followerTerminal.output(upTo: "Liked Mattt") != "")
    #expect(await leaderTerminal.output(upTo: "1 pending") != "")

    kill(leader.processIdentifier, SIGKILL)
    leader.waitUntilExit()
    followerTerminal.type(String(repeating: Self.downKey, count: 4) + "l")
    // Only changed cells are written, and the activity line already began with "Liked".
    #expect(await followerTerminal.output(upTo: "Oskar Lindqvist: First ice on the lake") != "")
    // At the new size, the program draws its whole screen. The timeline began with 30 likes.
    followerTerminal.resize(to: TerminalSize(columns: 100, rows: 24))
    kill(follower.processIdentifier, SIGWINCH)
    let followerOutput = await followerTerminal.output(upTo: "32 likes")
    #expect(followerOutput != "")
    #expect(!followerOutput.contains("Queued to be sent later"))
    followerTerminal.type("q")
    follower.waitUntilExit()
    #expect(follower.terminationStatus == 0)
    for terminal in [leaderTerminal, followerTerminal] {
      terminal.hangUp()
      terminal.close()
    }
  }

  /// A command that starts a program in a session of its own, in which no shell controls the program.
  private static let sessionLauncher = "/usr/bin/setsid"

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: sessionLauncher)))
  func `Without a shell, the program continues after Ctrl-Z`() async throws {
    try await withProgram(launcher: [Self.sessionLauncher, "--wait"]) { terminal, process in
      terminal.type("\u{1A}")
      _ = await terminal.output(upTo: Self.resumption)
      terminal.type("q")
      process.waitUntilExit()
      #expect(process.terminationReason == .exit)
      #expect(process.terminationStatus == 0)
    }
  }

  @Test(arguments: [SIGTERM, SIGHUP, SIGINT, SIGSEGV, SIGABRT, SIGILL, SIGTRAP, SIGBUS, SIGFPE])
  func `The program restores the terminal at a signal, and is terminated by that signal`(signal: CInt) async throws {
    try await withProgram { _, process in
      kill(process.processIdentifier, signal)
      process.waitUntilExit()
      #expect(process.terminationReason == .uncaughtSignal)
      #expect(process.terminationStatus == signal)
    }
  }
}
