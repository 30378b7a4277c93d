import Multicast

@testable import MomentsCommand

/// A terminal whose keyboard and size are a test's, and whose frames are kept.
final class FakeTerminal: TerminalType {
  let channel = MulticastChannel<TerminalEvent, Never>(buffering: .unbounded)
  /// Every frame, in order; with replay, so that a test may look at those it missed.
  let frames = MulticastRelay<Frame>(replay: 1_000, buffering: .unbounded)
  private let newFrames = MulticastRelay<Frame>(buffering: .unbounded)
  let calls = MulticastRelay<String>(replay: 100, buffering: .unbounded)
  let size: TerminalSize
  private let openFailure: TerminalError?
  private let failure: TerminalError?
  private let beforeShowing: @Sendable () async -> Void

  init(
    size: TerminalSize = TerminalSize(columns: 80, rows: 24), openFailure: TerminalError? = nil,
    failure: TerminalError? = nil, beforeShowing: @escaping @Sendable () async -> Void = {}
  ) {
    self.size = size
    self.openFailure = openFailure
    self.failure = failure
    self.beforeShowing = beforeShowing
  }

  var events: MulticastStream<TerminalEvent, Never> { channel.stream }

  func open() throws(TerminalError) -> TerminalSize {
    if let openFailure { throw openFailure }
    calls.send("open")
    return size
  }

  func show(_ frame: Frame) async throws(TerminalError) {
    if let failure { throw failure }
    frames.send(frame)
    newFrames.send(frame)
    await beforeShowing()
  }

  func suspend() { calls.send("suspend") }

  func close() { calls.send("close") }

  func type(_ text: String) {
    channel.send(.input(Array(text.utf8)))
  }

  /// The lines of the first frame, from the first of all on, that is as wanted.
  func lines(where isWanted: @Sendable ([String]) -> Bool) async -> [String] {
    // A frame without a size is no screen.
    for await frame in frames.stream where frame.size.rows > 0 && isWanted(frame.lines) { return frame.lines }
    return []
  }
}

extension FakeTerminal {
  /// The lines of all frames so far.
  func allFrames() async -> [[String]] {
    let subscription = frames.stream.subscribe()
    // The replay is there at once; what ends it is one more frame.
    frames.send(Frame(size: TerminalSize(columns: 0, rows: 0)))
    var all: [[String]] = []
    for await frame in subscription {
      if frame.lines.isEmpty { break }
      all.append(frame.lines)
    }
    return all
  }

  /// Types, and returns the lines of the first frame from then on that is as wanted.
  func lines(afterTyping text: String, where isWanted: @Sendable ([String]) -> Bool) async -> [String] {
    let subscription = newFrames.stream.subscribe()
    type(text)
    for await frame in subscription where isWanted(frame.lines) { return frame.lines }
    return []
  }
}

extension MulticastStream where Failure == Never {
  /// The first elements.
  func first(_ count: Int) async -> [Element] {
    var elements: [Element] = []
    for await element in self {
      elements.append(element)
      if elements.count == count { break }
    }
    return elements
  }
}
