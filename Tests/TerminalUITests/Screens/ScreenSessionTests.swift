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
  func `Keys end it, and the terminal is given back`(text: String, expected: ScreenSession.Ending) async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.calls.stream.first(1)
    terminal.type(text)
    #expect(await ending == expected)
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `A terminal that has gone ends it, with the key that was begun`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.calls.stream.first(1)
    terminal.channel.send(.input([0x1B]))
    terminal.channel.send(.ended)
    #expect(await ending == .hungUp)
    #expect(screen.keys == [.escape])
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `A terminal that cannot be written to is given back`() async {
    let error = TerminalError(code: 5, operation: "write")
    let terminal = FakeTerminal(failure: error)
    #expect(await makeSession(on: terminal).run() == .failed(error))
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `A terminal that cannot be taken over is reported, and the screen never runs`() async {
    let error = TerminalError(code: 25, operation: "tcgetattr")
    #expect(await makeSession(on: FakeTerminal(openFailure: error)).run() == .failed(error))
    #expect(screen.runs == [])
  }

  @Test func `Cancelling it gives the terminal back`() async {
    let session = makeSession()
    let task = Task { await session.run() }
    _ = await terminal.frames.stream.first(1)
    task.cancel()
    _ = await task.value
    #expect(await terminal.calls.stream.first(2) == ["open", "close"])
  }

  @Test func `What runs is cancelled and waited for before the terminal is given back`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    _ = await terminal.lines(afterTyping: "w") { $0[0] == "1 key" }
    await screen.gate.arrivals()
    terminal.type("q")
    _ = await ending
    // In either order, as both end by the same cancellation.
    #expect(screen.runs.contains("waited") && screen.runs.contains("ended"))
  }

  // MARK: Keys

  @Test func `Ctrl-Z gives the terminal to the shell, and is not the screen's`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.calls.stream.first(1)
    terminal.type("a\u{1A}b")
    #expect(await terminal.calls.stream.first(2) == ["open", "suspend"])
    terminal.type("q")
    _ = await ending
    #expect(screen.keys == [.character("a"), .character("b"), .character("q")])
  }

  @Test func `A key's own work does not hold up the keys behind it`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    _ = await terminal.lines(afterTyping: "wjj") { $0[0] == "3 keys" }
    #expect(screen.runs.last != "waited")
    screen.gate.open()
    _ = await terminal.lines(afterTyping: "j") { $0[0] == "4 keys" }
    terminal.type("q")
    _ = await ending
  }

  @Test func `Keys wait for what changes their meaning, but Ctrl-C does not`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    _ = await terminal.lines(afterTyping: "fjjfq\u{1A}") { $0[0] == "1 key" }
    #expect(await terminal.calls.stream.first(2) == ["open", "suspend"])
    #expect(screen.keys == [.character("f")])
    screen.gate.open()
    #expect(await ending == .quit)
    #expect(screen.keys == "fjjfq".map(Key.character))
    #expect(screen.runs.filter { $0 == "first" }.count == 2)
  }

  @Test func `Keys that wait where the user leaves are gone`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    terminal.type("fj\u{3}")
    #expect(await ending == .interrupted)
    #expect(screen.keys == [.character("f")])
  }

  @Test func `What keys ask for begins in their order`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    terminal.type(String(repeating: "n", count: 1_000) + "q")
    _ = await ending
    #expect(screen.numbers == Array(1...1_000))
  }

  @Test func `Escape alone is a key after a while, and at once with another key behind it`() async {
    let gate = Gate()
    let session = makeSession { duration in
      if duration == ScreenSession.escapeDuration { await gate.pass() }
    }
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    terminal.type("\u{1B}")
    await gate.arrivals(1)
    _ = await terminal.lines(afterTyping: "[A") { $0[0] == "1 key" }
    terminal.type("\u{1B}")
    await gate.arrivals(2)
    #expect(screen.keys == [.up])
    gate.open()
    _ = await terminal.lines { $0[0] == "2 keys" }
    terminal.type("q")
    _ = await ending
    // The wait of the first, which went on as an arrow, made none.
    #expect(screen.keys == [.up, .escape, .character("q")])
  }

  // MARK: Frames

  @Test func `A new size makes a frame of that size`() async {
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

  @Test func `The same size again, as after the shell had the terminal, makes a frame`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    terminal.channel.send(.resized(terminal.size))
    #expect(await terminal.frames.stream.first(2).count == 2)
    terminal.type("q")
    _ = await ending
  }

  @Test func `While the screen has no picture, the last one stays`() async {
    let session = makeSession()
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    _ = await terminal.lines(afterTyping: "j") { $0[0] == "1 key" }
    screen.hasPicture = false
    terminal.type("jj")
    // Time enough for every job to draw what it should not.
    for _ in 0..<1_000 { await Task.yield() }
    screen.hasPicture = true
    _ = await terminal.lines { $0[0] == "3 keys" }
    terminal.type("q")
    _ = await ending
    #expect(await terminal.allFrames().contains { $0[0] == "2 keys" } == false)
  }

  @Test func `A burst of changes while a frame is written becomes one frame`() async {
    let gate = Gate()
    let isHeld = Lock(false)
    let terminal = FakeTerminal(beforeShowing: { if isHeld.withLock({ $0 }) { await gate.pass() } })
    let session = makeSession(on: terminal)
    async let ending = session.run()
    _ = await terminal.frames.stream.first(1)
    isHeld.withLock { $0 = true }
    terminal.type("j")
    await gate.arrivals()
    let before = await terminal.allFrames().count
    for _ in 0..<49 { terminal.type("j") }
    for _ in 0..<1_000 { await Task.yield() }
    gate.open()
    _ = await terminal.lines { $0[0] == "50 keys" }
    #expect(await terminal.allFrames().count <= before + 2)
    terminal.type("q")
    _ = await ending
  }

  @Test func `Between frames there is a pause, however much changes`() async {
    let gate = Gate()
    let session = makeSession { duration in
      #expect(duration == ScreenSession.frameDuration)
      await gate.pass()
    }
    async let ending = session.run()
    await gate.arrivals()
    for _ in 0..<50 {
      terminal.type("j")
      await Task.yield()
    }
    #expect(await terminal.allFrames().count == 1)
    gate.open()
    _ = await terminal.lines { $0[0] == "50 keys" }
    terminal.type("q")
    _ = await ending
  }

  @Test func `A session that has ended keeps nothing alive`() async {
    weak var released: KeyScreen?
    do {
      let screen = KeyScreen()
      released = screen
      let session = ScreenSession(of: screen, on: terminal) { _ in }
      terminal.type("q")
      async let ending = session.run()
      _ = await terminal.calls.stream.first(1)
      terminal.type("q")
      _ = await ending
    }
    #expect(released == nil)
  }
}

/// A screen that shows how many keys were pressed, and its size.
@MainActor
@Observable
private final class KeyScreen: LiveScreen {
  private(set) var keys: [Key] = []
  private(set) var runs: [String] = []
  private(set) var numbers: [Int] = []
  var hasPicture = true
  let gate = Gate()

  func frame(size: TerminalSize) -> Frame? {
    guard hasPicture else { return nil }
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
        await self.gate.pass()
        for _ in 0..<100 { await Task.yield() }
        self.runs.append("waited")
      }
    case .character("f"):
      .performFirst {
        await self.gate.pass()
        self.runs.append("first")
      }
    case .character("n"): .perform { [number = keys.count] in self.numbers.append(number) }
    default: nil
    }
  }

  func run() async {
    runs.append("began")
    // Nobody opens it: only a cancellation lets through.
    await Gate().pass()
    runs.append("ended")
  }
}
