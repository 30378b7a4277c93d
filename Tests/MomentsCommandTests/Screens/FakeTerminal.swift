import Multicast

@testable import MomentsCommand

/// A terminal whose keyboard and size are a test's, and whose frames are kept.
final class FakeTerminal: TerminalType {
  let channel = MulticastChannel<TerminalEvent, Never>(buffering: .unbounded)
  /// Every frame, in order; with replay, so that a test may look at those it missed.
  let frames = MulticastRelay<Frame>(replay: 1_000, buffering: .unbounded)
  let calls = MulticastRelay<String>(replay: 100, buffering: .unbounded)
  let size: TerminalSize
  let failure: TerminalError?
  private let beforeShowing: @Sendable () async -> Void

  init(
    size: TerminalSize = TerminalSize(columns: 80, rows: 24), failure: TerminalError? = nil,
    beforeShowing: @escaping @Sendable () async -> Void = {}
  ) {
    self.size = size
    self.failure = failure
    self.beforeShowing = beforeShowing
  }

  var events: MulticastStream<TerminalEvent, Never> { channel.stream }

  func open() throws(TerminalError) -> TerminalSize {
    calls.send("open")
    return size
  }

  func show(_ frame: Frame) async throws(TerminalError) {
    if let failure { throw failure }
    frames.send(frame)
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
