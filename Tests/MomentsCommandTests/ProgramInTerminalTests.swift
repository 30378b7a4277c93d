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
  private static let restoration = TerminalRestoration.sequence.replacing("\u{1B}", with: "E")

  private final class BundleToken {}

  /// The program, which is beside the test executable or beside the test bundle.
  static let program = {
    let folder = Bundle(for: BundleToken.self).bundleURL
    let programs = [folder, folder.deletingLastPathComponent()].map { $0.appending(path: "moments") }
    return programs.first { FileManager.default.isExecutableFile(atPath: $0.path()) }
  }()

  /// Starts the program in a terminal, and waits until it has loaded the timeline.
  ///
  /// - Parameter launcher: The command that starts the program; empty to start it directly.
  private func start(in pseudo: PseudoTerminal, data: URL, launcher: [String]) async throws -> Process {
    let process = Process()
    let program: URL = try #require(Self.program)
    let command = launcher + [program.path(), "--data", data.path()]
    process.executableURL = URL(filePath: command[0])
    process.arguments = Array(command.dropFirst())
    process.environment = [
      "TERM": "xterm-256color", "SWIFT_BACKTRACE": "enable=no", "TSAN_OPTIONS": try sanitizerOptions(in: data),
    ]
    process.standardInput = pseudo.handle
    process.standardOutput = pseudo.handle
    try process.run()
    _ = await pseudo.output(upTo: "up to date")
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
    let signals = ["segv", "sigbus", "sigill", "sigtrap", "sigfpe", "abort"].map { "handle_\($0)=0" }
    return (signals + ["suppressions=\(suppressions.path())"]).joined(separator: ":")
  }

  /// Runs the program in a terminal, and checks that the terminal is restored when the program has ended.
  private func withProgram(
    launcher: [String] = [], _ body: (PseudoTerminal, Process) async throws -> Void
  ) async throws {
    let folder = TemporaryFolder()
    let pseudo = try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24))
    let before = try pseudo.modes()
    let process = try await start(in: pseudo, data: folder.url, launcher: launcher)
    #expect(try pseudo.modes() != before)
    try await body(pseudo, process)
    process.waitUntilExit()
    #expect(try pseudo.modes() == before)
    pseudo.hangUp()
    #expect(await pseudo.output(upTo: TerminalRestoration.sequence).hasSuffix(Self.restoration))
    pseudo.close()
  }

  @Test func `The program restores the terminal when the user quits`() async throws {
    try await withProgram { pseudo, process in
      pseudo.type("\u{1B}[Bq")
      process.waitUntilExit()
      #expect(process.terminationReason == .exit)
      #expect(process.terminationStatus == 0)
    }
  }

  @Test func `The program restores the terminal at Ctrl-C`() async throws {
    try await withProgram { pseudo, process in
      pseudo.type("\u{3}")
      process.waitUntilExit()
      #expect(process.terminationStatus == 130)
    }
  }

  @Test func `A signal ends the program even if its terminal accepts no output`() async throws {
    let folder = TemporaryFolder()
    let pseudo = try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24))
    let before = try pseudo.modes()
    let process = try await start(in: pseudo, data: folder.url, launcher: [])
    try pseudo.stall()
    // Makes the program draw, which blocks.
    kill(process.processIdentifier, SIGWINCH)
    kill(process.processIdentifier, SIGTERM)
    process.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal)
    #expect(process.terminationStatus == SIGTERM)
    #expect(try pseudo.modes() == before)
    pseudo.resume()
    pseudo.hangUp()
    pseudo.close()
  }

  /// The end of the output that restores the terminal, and the start of the output that takes it over again.
  private static let resumption = "\u{1B}[?1049l\u{1B}[?1049h"

  @Test func `The program restores the terminal when stopped, and takes it over again when continued`() async throws {
    try await withProgram { pseudo, process in
      let before = try pseudo.modes()
      kill(process.processIdentifier, SIGTSTP)
      var info = siginfo_t()
      #expect(waitid(P_PID, id_t(process.processIdentifier), &info, WSTOPPED | WNOWAIT) == 0)
      #expect(try pseudo.modes() != before)
      kill(process.processIdentifier, SIGCONT)
      _ = await pseudo.output(upTo: Self.resumption)
      pseudo.type("q")
      process.waitUntilExit()
      #expect(process.terminationReason == .exit)
      #expect(process.terminationStatus == 0)
    }
  }

  @Test func `When the program that sends likes is killed, another one on the same folder sends them`() async throws {
    let folder = TemporaryFolder()
    let (first, second) = (
      try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24)),
      try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24))
    )
    let leader = try await start(in: first, data: folder.url, launcher: [])
    let follower = try await start(in: second, data: folder.url, launcher: [])
    let down = "\u{1B}[B"
    // The first program sends this like, and both show it.
    second.type(down + "l")
    #expect(await second.output(upTo: "Liked Mattt") != "")
    #expect(await first.output(upTo: "1 pending") != "")

    kill(leader.processIdentifier, SIGKILL)
    leader.waitUntilExit()
    second.type(down + down + down + down + "l")
    // Only changed cells are written, and the activity line already began with "Liked".
    #expect(await second.output(upTo: "Oskar Lindqvist: First ice on the lake") != "")
    second.resize(to: TerminalSize(columns: 100, rows: 24))
    kill(follower.processIdentifier, SIGWINCH)
    let shown = await second.output(upTo: "32 likes")
    #expect(shown != "")
    #expect(!shown.contains("Queued to be sent later"))
    second.type("q")
    follower.waitUntilExit()
    #expect(follower.terminationStatus == 0)
    for pseudo in [first, second] {
      pseudo.hangUp()
      pseudo.close()
    }
  }

  private static let sessionLauncher = "/usr/bin/setsid"

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: sessionLauncher)))
  func `Without a shell, the program continues after Ctrl-Z`() async throws {
    try await withProgram(launcher: [Self.sessionLauncher, "--wait"]) { pseudo, process in
      pseudo.type("\u{1A}")
      _ = await pseudo.output(upTo: Self.resumption)
      pseudo.type("q")
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
