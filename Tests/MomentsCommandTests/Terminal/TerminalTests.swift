import Foundation
import Multicast
import Testing
import ThreadSanitizerSuppressions

@testable import MomentsCommand

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// One at a time: there is one terminal to restore in a process, and one handler for each signal.
@Suite(.timeLimit(.minutes(2)), .serialized) struct TerminalTests {
  private static let size = TerminalSize(columns: 20, rows: 3)
  private static let takeover = "E[?1049hE[?25lE[?7lE[?2004h"
  private static let restoration = TerminalRestoration.sequence.replacing("\u{1B}", with: "E")

  private func makeTerminal(
    _ pseudo: PseudoTerminal, restorationPatience: Int = TerminalRestoration.patience
  ) -> Terminal {
    Terminal(
      device: pseudo.device, capabilities: TerminalCapabilities(colors: .none, synchronizesOutput: false),
      restorationPatience: restorationPatience)
  }

  @Test func `It is taken over, written to, and given back as it was`() async throws {
    let pseudo = try PseudoTerminal(size: Self.size)
    let before = try pseudo.modes()
    let terminal = makeTerminal(pseudo)
    #expect(try await terminal.open() == Self.size)
    #expect(try pseudo.modes() != before)
    var frame = Frame(size: Self.size)
    frame.write("山", row: 1, column: 0)
    try await terminal.show(frame)
    try await terminal.show(frame)
    await terminal.close()
    #expect(try pseudo.modes() == before)
    try await terminal.show(Frame(size: Self.size))
    #expect(
      await pseudo.output(upTo: TerminalRestoration.sequence)
        == Self.takeover + "E[mE[2JE[H\r\n山" + Self.restoration)
    pseudo.hangUp()
    pseudo.close()
  }

  @Test func `It is given back also where its output is full for a moment`() async throws {
    let pseudo = try PseudoTerminal(size: Self.size)
    let before = try pseudo.modes()
    let terminal = makeTerminal(pseudo, restorationPatience: 1_000_000)
    _ = try await terminal.open()
    _ = await pseudo.output(upTo: "\u{1B}[?2004h")
    _ = fcntl(pseudo.device.output, F_SETFL, O_NONBLOCK)
    try pseudo.stall()
    async let closed: Void = terminal.close()
    // Time enough to find it full.
    for _ in 0..<1_000 { await Task.yield() }
    pseudo.goOn()
    await closed
    #expect(try pseudo.modes() == before)
    pseudo.hangUp()
    #expect(await pseudo.output(upTo: TerminalRestoration.sequence).hasSuffix("x" + Self.restoration))
    pseudo.close()
  }

  @Test func `It gets its modes back where it takes nothing any more`() async throws {
    let pseudo = try PseudoTerminal(size: Self.size)
    let before = try pseudo.modes()
    let terminal = makeTerminal(pseudo)
    _ = try await terminal.open()
    _ = await pseudo.output(upTo: "\u{1B}[?2004h")
    try pseudo.stall()
    await terminal.close()
    #expect(try pseudo.modes() == before)
    pseudo.hangUp()
    pseudo.goOn()
    // All that was written, and then the end.
    #expect(await pseudo.output(upTo: TerminalRestoration.sequence) == "")
    pseudo.close()
  }

  @Test func `Keys arrive as they are typed, without a line and without an echo`() async throws {
    let pseudo = try PseudoTerminal(size: Self.size)
    let terminal = makeTerminal(pseudo)
    let events = terminal.events.subscribe()
    _ = try await terminal.open()
    var bytes: [UInt8] = []
    pseudo.type("j\u{3}\r")
    for await event in events {
      if case .input(let more) = event { bytes += more }
      if bytes.count >= 3 { break }
    }
    #expect(bytes == [0x6A, 0x03, 0x0D])
    await terminal.close()
    #expect(await pseudo.output(upTo: TerminalRestoration.sequence) == Self.takeover + Self.restoration)
    pseudo.hangUp()
    pseudo.close()
  }

  @Test func `Keys arrive also from a terminal that has the descriptors of one that was closed`() async throws {
    for _ in 0..<100 {
      let pseudo = try PseudoTerminal(size: Self.size)
      let terminal = makeTerminal(pseudo)
      let events = terminal.events.subscribe()
      _ = try await terminal.open()
      pseudo.type("j")
      var iterator = events.makeAsyncIterator()
      #expect(await iterator.next() == .input([0x6A]))
      await terminal.close()
      pseudo.hangUp()
      pseudo.close()
    }
  }

  @Test func `A new size arrives when the window changes`() async throws {
    let pseudo = try PseudoTerminal(size: Self.size)
    let terminal = makeTerminal(pseudo)
    let events = terminal.events.subscribe()
    _ = try await terminal.open()
    pseudo.resize(to: TerminalSize(columns: 100, rows: 30))
    // The kernel tells the jobs of a controlling terminal, which this one is not.
    kill(getpid(), SIGWINCH)
    var iterator = events.makeAsyncIterator()
    #expect(await iterator.next() == .resized(TerminalSize(columns: 100, rows: 30)))
    await terminal.close()
    #expect(await iterator.next() == nil)
    pseudo.hangUp()
    pseudo.close()
  }

  // MARK: The whole program

  /// Beside the tests: in their folder, or in that of their bundle.
  static let program = {
    let folder = Bundle(for: PseudoTerminal.self).bundleURL
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
