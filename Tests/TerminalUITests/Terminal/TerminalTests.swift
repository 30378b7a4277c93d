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
  private static let takeoverEnd = "\u{1B}[?2004h"
  // In these outputs, `E` stands for the escape character, as in `PseudoTerminal.output(upTo:)`.
  private static let takeoverOutput = "E[?1049hE[?25lE[?7lE[?2004h"
  private static let restorationOutput = TerminalRestoration.sequence.replacing("\u{1B}", with: "E")

  private func makeTerminal(
    on pseudoTerminal: PseudoTerminal, restorationTimeout: Int = TerminalRestoration.timeout
  ) -> Terminal {
    Terminal(
      device: pseudoTerminal.device, capabilities: TerminalCapabilities(colors: .none, synchronizesOutput: false),
      restorationTimeout: restorationTimeout)
  }

  @Test func `A terminal is taken over, written to, and restored`() async throws {
    let pseudoTerminal = try PseudoTerminal(size: Self.size)
    let modesBefore = try pseudoTerminal.modes()
    let terminal = makeTerminal(on: pseudoTerminal)
    #expect(try await terminal.open() == Self.size)
    #expect(try pseudoTerminal.modes() != modesBefore)
    var frame = Frame(size: Self.size)
    frame.write("山", row: 1, column: 0)
    try await terminal.show(frame)
    // An equal frame produces no output.
    try await terminal.show(frame)
    await terminal.close()
    #expect(try pseudoTerminal.modes() == modesBefore)
    // A closed terminal shows no frame.
    try await terminal.show(Frame(size: Self.size))
    #expect(
      await pseudoTerminal.output(upTo: TerminalRestoration.sequence)
        == Self.takeoverOutput + "E[mE[2JE[H\r\n山" + Self.restorationOutput)
    pseudoTerminal.hangUp()
    pseudoTerminal.close()
  }

  @Test func `A terminal is restored even if its output buffer is full for a moment`() async throws {
    let pseudoTerminal = try PseudoTerminal(size: Self.size)
    let modesBefore = try pseudoTerminal.modes()
    // The timeout is 1,000 seconds, so that it can't pass while the buffer is full.
    let terminal = makeTerminal(on: pseudoTerminal, restorationTimeout: 1_000_000)
    _ = try await terminal.open()
    _ = await pseudoTerminal.output(upTo: Self.takeoverEnd)
    // A write to a full buffer then fails instead of blocking.
    _ = fcntl(pseudoTerminal.device.output, F_SETFL, O_NONBLOCK)
    try pseudoTerminal.stall()
    async let closing: Void = terminal.close()
    // Enough time for `close()` to find the output buffer full.
    for _ in 0..<1_000 { await Task.yield() }
    pseudoTerminal.resume()
    await closing
    #expect(try pseudoTerminal.modes() == modesBefore)
    // The letter is the last one with which `stall()` filled the buffer.
    #expect(await pseudoTerminal.output(upTo: TerminalRestoration.sequence).hasSuffix("x" + Self.restorationOutput))
    pseudoTerminal.hangUp()
    pseudoTerminal.close()
  }

  @Test func `The modes are restored even if the terminal accepts no output`() async throws {
    let pseudoTerminal = try PseudoTerminal(size: Self.size)
    let modesBefore = try pseudoTerminal.modes()
    let terminal = makeTerminal(on: pseudoTerminal)
    _ = try await terminal.open()
    _ = await pseudoTerminal.output(upTo: Self.takeoverEnd)
    try pseudoTerminal.stall()
    await terminal.close()
    #expect(try pseudoTerminal.modes() == modesBefore)
    pseudoTerminal.hangUp()
    pseudoTerminal.resume()
    // The output ends without the sequence that restores the terminal. `output(upTo:)` then returns an empty string.
    #expect(await pseudoTerminal.output(upTo: TerminalRestoration.sequence) == "")
    pseudoTerminal.close()
  }

  @Test func `Keys arrive as they are typed, without line buffering or echo`() async throws {
    let pseudoTerminal = try PseudoTerminal(size: Self.size)
    let terminal = makeTerminal(on: pseudoTerminal)
    let events = terminal.events.subscribe()
    _ = try await terminal.open()
    var bytes: [UInt8] = []
    pseudoTerminal.type("j\u{3}\r")
    for await event in events {
      if case .input(let newBytes) = event { bytes += newBytes }
      if bytes.count >= 3 { break }
    }
    #expect(bytes == [0x6A, 0x03, 0x0D])
    await terminal.close()
    #expect(
      await pseudoTerminal.output(upTo: TerminalRestoration.sequence)
        == Self.takeoverOutput + Self.restorationOutput)
    pseudoTerminal.hangUp()
    pseudoTerminal.close()
  }

  @Test func `Keys arrive from a terminal that reuses the descriptors of a closed one`() async throws {
    for _ in 0..<100 {
      let pseudoTerminal = try PseudoTerminal(size: Self.size)
      let terminal = makeTerminal(on: pseudoTerminal)
      let events = terminal.events.subscribe()
      _ = try await terminal.open()
      pseudoTerminal.type("j")
      var iterator = events.makeAsyncIterator()
      #expect(await iterator.next() == .input([0x6A]))
      await terminal.close()
      pseudoTerminal.hangUp()
      pseudoTerminal.close()
    }
  }

  @Test func `A change of the window's size is reported`() async throws {
    let pseudoTerminal = try PseudoTerminal(size: Self.size)
    let terminal = makeTerminal(on: pseudoTerminal)
    let events = terminal.events.subscribe()
    _ = try await terminal.open()
    pseudoTerminal.resize(to: TerminalSize(columns: 100, rows: 30))
    // The kernel sends the signal only to the foreground job of a terminal. The pseudo-terminal has no job, so the test
    // sends the signal.
    kill(getpid(), SIGWINCH)
    var iterator = events.makeAsyncIterator()
    #expect(await iterator.next() == .resized(TerminalSize(columns: 100, rows: 30)))
    await terminal.close()
    #expect(await iterator.next() == nil)
    pseudoTerminal.hangUp()
    pseudoTerminal.close()
  }

  @Test func `A signal that arrives just before the terminal is closed is left to the program's own handler`()
    async throws
  {
    var action = signalAction { _ in ReceivedSignals.count.add(1, ordering: .sequentiallyConsistent) }
    var earlierAction = sigaction()
    sigaction(SIGHUP, &action, &earlierAction)
    defer { sigaction(SIGHUP, &earlierAction, nil) }
    let pseudoTerminal = try PseudoTerminal(size: Self.size)
    let terminal = makeTerminal(on: pseudoTerminal)
    _ = try await terminal.open()
    let signalPipe = try #require(await terminal.signalPipe)
    await terminal.close(afterReceiving: SIGHUP, through: signalPipe)
    while ReceivedSignals.count.load(ordering: .sequentiallyConsistent) == 0 { await Task.yield() }
    // Simulates that the time limit for handling the signal passes. That doesn't end the program, because `close()` has
    // stopped the pipe.
    Terminal.terminate(by: SIGHUP, through: signalPipe)
    #expect(ReceivedSignals.count.load(ordering: .sequentiallyConsistent) == 1)
    pseudoTerminal.hangUp()
    pseudoTerminal.close()
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
          TerminalRestoration.restoreAndDisarm()
          TerminalRestoration.arm(device, modes: termios(), timeout: 0)
        }
      }
      // On Darwin, the threads that run tasks can't raise signals.
      let firstUncountedSignal: Int? = await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          let firstUncountedSignal = (1...100_000).first { raisedCount in
            raise(SIGFPE)
            return ReceivedSignals.count.load(ordering: .sequentiallyConsistent) != raisedCount
          }
          continuation.resume(returning: firstUncountedSignal)
        }
      }
      #expect(firstUncountedSignal == nil)
    }
  }

  @Test func `A terminal can't be opened again after it was closed`() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let pseudoTerminal = try PseudoTerminal(size: TerminalSize(columns: 20, rows: 3))
      let terminal = Terminal(
        device: pseudoTerminal.device, capabilities: TerminalCapabilities(colors: .none, synchronizesOutput: false))
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
  /// Receives a signal, and closes the terminal before the actor handles the signal.
  fileprivate func close(afterReceiving signal: CInt, through pipe: SignalPipe) async {
    receive(signal, through: pipe)
    await close()
  }
}
