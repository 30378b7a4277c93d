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

/// The whole program in a terminal, which it leaves as it was.
@Suite(.timeLimit(.minutes(15)), .serialized) struct ProgramInTerminalTests {
  private static let restoration = TerminalRestoration.sequence.replacing("\u{1B}", with: "E")

  private final class BundleToken {}

  /// Beside the tests: in their folder, or in that of their bundle.
  static let program = {
    let folder = Bundle(for: BundleToken.self).bundleURL
    let programs = [folder, folder.deletingLastPathComponent()].map { $0.appending(path: "moments") }
    return programs.first { FileManager.default.isExecutableFile(atPath: $0.path()) }
  }()

  /// Starts the program in a terminal, by another one where there is a launcher, and waits for its first list.
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

  /// For a thread sanitizer in the program, which by itself knows nothing of one.
  ///
  /// It suppresses there what it suppresses in the tests, and leaves the signals of a crash alone, which it would take.
  private func sanitizerOptions(in folder: URL) throws -> String {
    let suppressions = folder.appending(path: "suppressions")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(String(cString: __tsan_default_suppressions()).utf8).write(to: suppressions)
    let signals = ["segv", "sigbus", "sigill", "sigtrap", "sigfpe", "abort"].map { "handle_\($0)=0" }
    return (signals + ["suppressions=\(suppressions.path())"]).joined(separator: ":")
  }

  private func withProgram(
    launcher: [String] = [], _ body: (PseudoTerminal, Process) async throws -> Void
  ) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "moments-live-\(UUID().uuidString)")
    let pseudo = try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24))
    let before = try pseudo.modes()
    let process = try await start(in: pseudo, data: folder, launcher: launcher)
    #expect(try pseudo.modes() != before)
    try await body(pseudo, process)
    process.waitUntilExit()
    #expect(try pseudo.modes() == before)
    pseudo.hangUp()
    #expect(await pseudo.output(upTo: TerminalRestoration.sequence).hasSuffix(Self.restoration))
    pseudo.close()
    try FileManager.default.removeItem(at: folder)
  }

  @Test func `The program leaves the terminal as it was at a quit`() async throws {
    try await withProgram { pseudo, process in
      pseudo.type("\u{1B}[Bq")
      process.waitUntilExit()
      #expect(process.terminationReason == .exit)
      #expect(process.terminationStatus == 0)
    }
  }

  @Test func `The program leaves the terminal as it was at Ctrl-C`() async throws {
    try await withProgram { pseudo, process in
      pseudo.type("\u{3}")
      process.waitUntilExit()
      #expect(process.terminationStatus == 130)
    }
  }

  @Test func `A signal ends the program also where its terminal takes nothing any more`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "moments-live-\(UUID().uuidString)")
    let pseudo = try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24))
    let before = try pseudo.modes()
    let process = try await start(in: pseudo, data: folder, launcher: [])
    try pseudo.stall()
    // Lets it draw, which waits.
    kill(process.processIdentifier, SIGWINCH)
    kill(process.processIdentifier, SIGTERM)
    process.waitUntilExit()
    #expect(process.terminationReason == .uncaughtSignal)
    #expect(process.terminationStatus == SIGTERM)
    #expect(try pseudo.modes() == before)
    pseudo.goOn()
    pseudo.hangUp()
    pseudo.close()
    try FileManager.default.removeItem(at: folder)
  }

  /// What a terminal is sent that is given back and taken over again.
  private static let comingBack = "\u{1B}[?1049l\u{1B}[?1049h"

  @Test func `The program stops at Ctrl-Z with the terminal as it was, and goes on where it is continued`() async throws
  {
    try await withProgram { pseudo, process in
      let before = try pseudo.modes()
      kill(process.processIdentifier, SIGTSTP)
      var info = siginfo_t()
      #expect(waitid(P_PID, id_t(process.processIdentifier), &info, WSTOPPED | WNOWAIT) == 0)
      #expect(try pseudo.modes() != before)
      kill(process.processIdentifier, SIGCONT)
      _ = await pseudo.output(upTo: Self.comingBack)
      pseudo.type("q")
      process.waitUntilExit()
      #expect(process.terminationReason == .exit)
      #expect(process.terminationStatus == 0)
    }
  }

  @Test func `Two programs on one folder are live, and one goes on to send where the other is killed`() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "moments-live-\(UUID().uuidString)")
    let (first, second) = (
      try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24)),
      try PseudoTerminal(size: TerminalSize(columns: 80, rows: 24))
    )
    let leader = try await start(in: first, data: folder, launcher: [])
    let follower = try await start(in: second, data: folder, launcher: [])
    let down = "\u{1B}[B"
    // The first program sends this like, and both show it.
    second.type(down + "l")
    #expect(await second.output(upTo: "Liked Mattt") != "")
    #expect(await first.output(upTo: "1 pending") != "")

    kill(leader.processIdentifier, SIGKILL)
    leader.waitUntilExit()
    second.type(down + down + down + down + "l")
    // Only what has changed is written: both lines begin with "Liked".
    #expect(await second.output(upTo: "Oskar Lindqvist: First ice on the lake") != "")
    second.resize(to: TerminalSize(columns: 100, rows: 24))
    kill(follower.processIdentifier, SIGWINCH)
    let shown = await second.output(upTo: "32 likes")
    #expect(shown != "")
    #expect(!shown.contains("Queued until"))
    second.type("q")
    follower.waitUntilExit()
    #expect(follower.terminationStatus == 0)
    for pseudo in [first, second] {
      pseudo.hangUp()
      pseudo.close()
    }
    try FileManager.default.removeItem(at: folder)
  }

  private static let sessionLauncher = "/usr/bin/setsid"

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: sessionLauncher)))
  func `The program goes on at Ctrl-Z where no shell waits for it`() async throws {
    try await withProgram(launcher: [Self.sessionLauncher, "--wait"]) { pseudo, process in
      pseudo.type("\u{1A}")
      _ = await pseudo.output(upTo: Self.comingBack)
      pseudo.type("q")
      process.waitUntilExit()
      #expect(process.terminationReason == .exit)
      #expect(process.terminationStatus == 0)
    }
  }

  @Test(arguments: [SIGTERM, SIGHUP, SIGINT, SIGSEGV, SIGABRT, SIGILL, SIGTRAP, SIGBUS, SIGFPE])
  func `The program leaves the terminal as it was at a signal, and dies of that signal`(signal: CInt) async throws {
    try await withProgram { _, process in
      kill(process.processIdentifier, signal)
      process.waitUntilExit()
      #expect(process.terminationReason == .uncaughtSignal)
      #expect(process.terminationStatus == signal)
    }
  }
}
