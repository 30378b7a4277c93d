import Multicast
import MulticastTesting
import Observation
import TestSupport
import Testing

@testable import TerminalUI

@MainActor @Suite(.timeLimit(.minutes(15))) struct ScreenSessionTests {
  private let terminal = FakeTerminal()
  private let screen = KeyScreen()

  private func makeSession(
    on terminal: FakeTerminal? = nil, pause: @escaping @Sendable (Duration) async throws -> Void = { _ in }
  ) -> ScreenSession {
    ScreenSession(of: screen, on: terminal ?? self.terminal, pause: pause)
  }

  // MARK: Endings

  @Test(arguments: [("\u{3}", ScreenSession.Ending.interrupted), ("jjkq", .quit)])
  func `Ctrl-C, or a key that quits, ends the session and restores the terminal`(
    text: String, expected: ScreenSession.Ending
  ) async {
    let session = makeSession()
    async let ending = session.run()
    // Waits until the session has opened the terminal, because earlier keys would be lost.
    _ = await terminal.calls.stream.first(1)
    terminal.type(text)
    #expect(await ending == expected)
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `When the terminal is disconnected, a pending Escape is delivered and the session ends`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.calls.stream.first(1)
    terminal.channel.send(.input([0x1B]))
    terminal.channel.send(.ended)
    #expect(await ending == .hungUp)
    #expect(screen.keys == [.escape])
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `A terminal that cannot be written to is restored`() async {
    let error = TerminalError(code: 5, operation: "write")
    let terminal = FakeTerminal(failure: error)
    #expect(await makeSession(on: terminal).run() == .failed(error))
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `A terminal that cannot be taken over is reported, and the screen never runs`() async {
    let error = TerminalError(code: 25, operation: "tcgetattr")
    #expect(await makeSession(on: FakeTerminal(openFailure: error)).run() == .failed(error))
    #expect(screen.log == [])
  }

  @Test func `Cancelling the session restores the terminal`() async {
    let session = makeSession()
    let task = Task { await session.run() }
    _ = await terminal.frames.stream.first(1)
    task.cancel()
    _ = await task.value
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `Running actions are cancelled and awaited before the session ends`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    _ = await terminal.lines(afterTyping: "w") { $0[0] == "1 key" }
    await screen.actionGate.arrivals()
    terminal.type("q")
    _ = await ending
    // The order is not fixed, because the same cancellation ends the action and the screen's `run()`.
    #expect(screen.log.contains("w completed") && screen.log.contains("run ended"))
  }

  // MARK: Keys

  @Test func `Ctrl-Z suspends the program, and is not delivered to the screen`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.calls.stream.first(1)
    terminal.type("a\u{1A}b")
    #expect(await terminal.calls.stream.first(2) == ["open", "suspend"])
    terminal.type("q")
    _ = await ending
    #expect(screen.keys == [.character("a"), .character("b"), .character("q")])
  }

  @Test func `The action of a key does not block the following keys`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    _ = await terminal.lines(afterTyping: "wjj") { $0[0] == "3 keys" }
    #expect(screen.log.last != "w completed")
    screen.actionGate.open()
    _ = await terminal.lines(afterTyping: "j") { $0[0] == "4 keys" }
    terminal.type("q")
    _ = await ending
  }

  @Test func `Keys wait for an action that changes their meaning, but Ctrl-Z does not`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    _ = await terminal.lines(afterTyping: "fjjfq\u{1A}") { $0[0] == "1 key" }
    #expect(await terminal.calls.stream.first(2) == ["open", "suspend"])
    #expect(screen.keys == [.character("f")])
    screen.actionGate.open()
    #expect(await ending == .quit)
    #expect(screen.keys == "fjjfq".map(Key.character))
    #expect(screen.log.filter { $0 == "f completed" }.count == 2)
  }

  @Test func `Pending keys are discarded when the user leaves`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    terminal.type("fj\u{3}")
    #expect(await ending == .interrupted)
    #expect(screen.keys == [.character("f")])
  }

  @Test func `The actions of keys start in the order of the keys`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    terminal.type(String(repeating: "n", count: 1_000) + "q")
    _ = await ending
    #expect(screen.actionNumbers == Array(1...1_000))
  }

  @Test func `An Escape byte becomes a key after a delay, unless the rest of a sequence arrives first`() async {
    let pauseGate = Gate()
    let session = makeSession { duration in
      if duration == ScreenSession.escapeDuration { await pauseGate.pass() }
    }
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    terminal.type("\u{1B}")
    await pauseGate.arrivals(1)
    _ = await terminal.lines(afterTyping: "[A") { $0[0] == "1 key" }
    terminal.type("\u{1B}")
    await pauseGate.arrivals(2)
    #expect(screen.keys == [.up])
    pauseGate.open()
    _ = await terminal.lines { $0[0] == "2 keys" }
    terminal.type("q")
    _ = await ending
    // The first Escape byte began the sequence of an arrow key, so the delay after it added no key.
    #expect(screen.keys == [.up, .escape, .character("q")])
  }

  // MARK: Frames

  @Test func `A new size draws a frame of that size`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.calls.stream.first(1)
    for size in [TerminalSize(columns: 100, rows: 30), TerminalSize(columns: 20, rows: 5)] {
      terminal.channel.send(.resized(size))
      #expect(await terminal.lines { $0[1] == "\(size)" }.count == size.rows)
    }
    terminal.type("q")
    #expect(await ending == .quit)
  }

  @Test func `A resize event with the same size draws a frame`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    terminal.channel.send(.resized(terminal.size))
    #expect(await terminal.frames.stream.first(2).count == 2)
    terminal.type("q")
    _ = await ending
  }

  @Test func `While the screen returns no frame, the terminal keeps showing the last one`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    _ = await terminal.lines(afterTyping: "j") { $0[0] == "1 key" }
    screen.hasFrame = false
    terminal.type("jj")
    // Enough time for every job that could draw a wrong frame.
    for _ in 0..<1_000 { await Task.yield() }
    screen.hasFrame = true
    _ = await terminal.lines { $0[0] == "3 keys" }
    terminal.type("q")
    _ = await ending
    #expect(terminal.allFrames.contains { $0[0] == "2 keys" } == false)
  }

  @Test func `A burst of changes while a frame is written becomes one frame`() async {
    let showGate = Gate()
    let holdsFrames = Lock(false)
    let terminal = FakeTerminal(whileShowing: { if holdsFrames.withLock({ $0 }) { await showGate.pass() } })
    let session = makeSession(on: terminal)
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    holdsFrames.withLock { $0 = true }
    terminal.type("j")
    await showGate.arrivals()
    let frameCountBeforeBurst = terminal.allFrames.count
    for _ in 0..<49 { terminal.type("j") }
    // Usually enough time for the session to deliver these keys.
    for _ in 0..<1_000 { await Task.yield() }
    showGate.open()
    _ = await terminal.lines { $0[0] == "50 keys" }
    // One frame with all changes, or two if the session was still delivering keys when the gate opened.
    #expect(terminal.allFrames.count <= frameCountBeforeBurst + 2)
    terminal.type("q")
    _ = await ending
  }

  @Test func `Frames are separated by a pause, no matter how many changes occur`() async {
    let pauseGate = Gate()
    let session = makeSession { duration in
      #expect(duration == ScreenSession.frameDuration)
      await pauseGate.pass()
    }
    async let ending = session.run()
    await pauseGate.arrivals()
    for _ in 0..<50 {
      terminal.type("j")
      await Task.yield()
    }
    #expect(terminal.allFrames.count == 1)
    pauseGate.open()
    _ = await terminal.lines { $0[0] == "50 keys" }
    terminal.type("q")
    _ = await ending
  }

  @Test func `A session that has ended does not retain its screen`() async {
    weak var weakScreen: KeyScreen?
    do {
      let screen = KeyScreen()
      weakScreen = screen
      let session = ScreenSession(of: screen, on: terminal, pause: { _ in })
      async let ending = session.run()
      _ = await terminal.calls.stream.first(1)
      terminal.type("q")
      _ = await ending
    }
    #expect(weakScreen == nil)
  }
}

/// A screen that shows the number of pressed keys, and the size of the terminal.
///
/// The key `q` quits. The actions of `w` and `f` wait for ``actionGate``, and the keys after `f` wait for its action.
/// The action of `n` records the number of its key. The other keys have no action.
@MainActor
@Observable
private final class KeyScreen: LiveScreen {
  private(set) var keys: [Key] = []
  /// What ``run()`` and the actions of `w` and `f` have done so far.
  private(set) var log: [String] = []
  /// The numbers of the `n` keys, in the order of their actions; the first key has the number 1.
  private(set) var actionNumbers: [Int] = []
  var hasFrame = true
  let actionGate = Gate()

  func frame(size: TerminalSize) -> Frame? {
    guard hasFrame else { return nil }
    var frame = Frame(size: size)
    frame.write(keys.count == 1 ? "1 key" : "\(keys.count) keys", row: 0, column: 0)
    frame.write("\(size)", row: 1, column: 0)
    return frame
  }

  func press(_ key: Key, size: TerminalSize) -> KeyResponse? {
    keys.append(key)
    return switch key {
    case .character("q"): .quit
    case .character("w"):
      .perform {
        await self.actionGate.pass()
        // Continues for a while even after its cancellation, so a session that doesn't wait for the action ends first.
        for _ in 0..<100 { await Task.yield() }
        self.log.append("w completed")
      }
    case .character("f"):
      .performFirst {
        await self.actionGate.pass()
        self.log.append("f completed")
      }
    case .character("n"): .perform { [number = keys.count] in self.actionNumbers.append(number) }
    default: nil
    }
  }

  func run() async {
    log.append("run began")
    // This gate is never opened, so only cancellation ends the wait.
    await Gate().pass()
    log.append("run ended")
  }
}
