import Foundation
import Multicast
import Synchronization
import TestSupport
import Testing

@testable import TerminalUI

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The tests are serialized, because a process has one terminal to restore and one handler for each signal.
@Suite(.timeLimit(.minutes(15)), .serialized) struct TerminalTests {
  private static let size = TerminalSize(columns: 20, rows: 3)
  private static let takeover = "E[?1049hE[?25lE[?7lE[?2004h"
  private static let restoration = TerminalRestoration.sequence.replacing("\u{1B}", with: "E")

  private func makeTerminal(
    _ pseudo: PseudoTerminal, restorationTimeout: Int = TerminalRestoration.timeout
  ) -> Terminal {
    Terminal(
      device: pseudo.device, capabilities: TerminalCapabilities(colors: .none, synchronizesOutput: false),
      restorationTimeout: restorationTimeout)
  }

  @Test func `A terminal is taken over, written to, and restored`() async throws {
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

  @Test func `A terminal is restored even if its output buffer is full for a moment`() async throws {
    let pseudo = try PseudoTerminal(size: Self.size)
    let before = try pseudo.modes()
    let terminal = makeTerminal(pseudo, restorationTimeout: 1_000_000)
    _ = try await terminal.open()
    _ = await pseudo.output(upTo: "\u{1B}[?2004h")
    _ = fcntl(pseudo.device.output, F_SETFL, O_NONBLOCK)
    try pseudo.stall()
    async let closed: Void = terminal.close()
    // Enough time for `close()` to find the output buffer full.
    for _ in 0..<1_000 { await Task.yield() }
    pseudo.resume()
    await closed
    #expect(try pseudo.modes() == before)
    #expect(await pseudo.output(upTo: TerminalRestoration.sequence).hasSuffix("x" + Self.restoration))
    pseudo.hangUp()
    pseudo.close()
  }

  @Test func `The modes are restored even if the terminal accepts no output`() async throws {
    let pseudo = try PseudoTerminal(size: Self.size)
    let before = try pseudo.modes()
    let terminal = makeTerminal(pseudo)
    _ = try await terminal.open()
    _ = await pseudo.output(upTo: "\u{1B}[?2004h")
    try pseudo.stall()
    await terminal.close()
    #expect(try pseudo.modes() == before)
    pseudo.hangUp()
    pseudo.resume()
    // The output ends without the sequence that restores the terminal.
    #expect(await pseudo.output(upTo: TerminalRestoration.sequence) == "")
    pseudo.close()
  }

  @Test func `Keys arrive as they are typed, without line buffering or echo`() async throws {
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

  @Test func `Keys arrive from a terminal that reuses the descriptors of a closed one`() async throws {
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

  @Test func `A change of the window's size is reported`() async throws {
    let pseudo = try PseudoTerminal(size: Self.size)
    let terminal = makeTerminal(pseudo)
    let events = terminal.events.subscribe()
    _ = try await terminal.open()
    pseudo.resize(to: TerminalSize(columns: 100, rows: 30))
    // The kernel sends the signal only to the foreground job of a terminal. The pseudo-terminal has no job, so the test
    // sends the signal.
    kill(getpid(), SIGWINCH)
    var iterator = events.makeAsyncIterator()
    #expect(await iterator.next() == .resized(TerminalSize(columns: 100, rows: 30)))
    await terminal.close()
    #expect(await iterator.next() == nil)
    pseudo.hangUp()
    pseudo.close()
  }

  @Test func `A signal that arrives just before the terminal is closed is left to the program's own handler`()
    async throws
  {
    var action = signalAction { _ in ReceivedSignals.count.add(1, ordering: .sequentiallyConsistent) }
    var earlier = sigaction()
    sigaction(SIGHUP, &action, &earlier)
    defer { sigaction(SIGHUP, &earlier, nil) }
    let pseudo = try PseudoTerminal(size: Self.size)
    let terminal = makeTerminal(pseudo)
    _ = try await terminal.open()
    let pipe = try #require(await terminal.signals)
    await terminal.close(afterReceiving: SIGHUP, through: pipe)
    while ReceivedSignals.count.load(ordering: .sequentiallyConsistent) == 0 { await Task.yield() }
    // Simulates that the time limit for handling the signal passes.
    Terminal.terminate(by: SIGHUP, through: pipe)
    #expect(ReceivedSignals.count.load(ordering: .sequentiallyConsistent) == 1)
    pseudo.hangUp()
    pseudo.close()
  }

  @Test func `A crash reaches the program's own handler, even while another thread takes over or restores a terminal`()
    async
  {
    await #expect(processExitsWith: .success) {
      var action = signalAction { _ in ReceivedSignals.count.add(1, ordering: .sequentiallyConsistent) }
      sigaction(SIGFPE, &action, nil)
      // No descriptor, so that each restoration is short.
      let device = TerminalDevice(input: -1, output: -1)
      TerminalRestoration.arm(device, modes: termios(), timeout: 0)
      Thread.detachNewThread {
        while true {
          TerminalRestoration.disarm()
          TerminalRestoration.arm(device, modes: termios(), timeout: 0)
        }
      }
      // On Darwin, the threads that run tasks can't raise signals.
      let unexpected: Int? = await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          let unexpected = (1...100_000).first { number in
            raise(SIGFPE)
            return ReceivedSignals.count.load(ordering: .sequentiallyConsistent) != number
          }
          continuation.resume(returning: unexpected)
        }
      }
      #expect(unexpected == nil)
    }
  }

  @Test func `A terminal can't be opened again after it was closed`() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let pseudo = try PseudoTerminal(size: TerminalSize(columns: 20, rows: 3))
      let terminal = Terminal(
        device: pseudo.device, capabilities: TerminalCapabilities(colors: .none, synchronizesOutput: false))
      _ = try await terminal.open()
      await terminal.close()
      _ = try await terminal.open()
    }
    let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(message.contains("Terminal: 'open()' must be called only once."))
  }
}

private enum ReceivedSignals {
  static let count = Atomic(0)
}

extension Terminal {
  /// Closes the terminal after a signal was received and before the actor handles it.
  fileprivate func close(afterReceiving signal: CInt, through pipe: SignalPipe) async {
    receive(signal, through: pipe)
    await close()
  }
}
