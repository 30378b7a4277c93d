package import Multicast
package import TerminalUI

/// A terminal whose input and size a test controls, and which records its frames.
package final class FakeTerminal: TerminalType {
  package let channel = MulticastChannel<TerminalEvent, Never>(buffering: .unbounded)
  /// All frames in order, with a replay, so that a test can inspect earlier frames.
  package let frames = MulticastRelay<Frame>(replay: 1_000, buffering: .unbounded)
  private let shownFrames = Lock<[Frame]>([])
  /// All frames without a replay, so that a test can wait for the next one.
  private let newFrames = MulticastRelay<Frame>(buffering: .unbounded)
  /// The names of the methods that were called and didn't throw: `open`, `suspend` and `close`.
  package let calls = MulticastRelay<String>(replay: 100, buffering: .unbounded)
  package let size: TerminalSize
  private let openFailure: TerminalError?
  private let showFailure: TerminalError?
  private let whileShowing: @Sendable () async -> Void

  /// Creates a terminal.
  ///
  /// - Parameters:
  ///   - size: The size of the terminal.
  ///   - openFailure: The error that ``open()`` throws, if any.
  ///   - failure: The error that ``show(_:)`` throws, if any.
  ///   - whileShowing: A closure that runs in ``show(_:)`` after the frame was recorded.
  package init(
    size: TerminalSize = TerminalSize(columns: 80, rows: 24), openFailure: TerminalError? = nil,
    failure: TerminalError? = nil, whileShowing: @escaping @Sendable () async -> Void = {}
  ) {
    self.size = size
    self.openFailure = openFailure
    self.showFailure = failure
    self.whileShowing = whileShowing
  }

  package var events: MulticastStream<TerminalEvent, Never> { channel.stream }

  package func open() throws(TerminalError) -> TerminalSize {
    if let openFailure { throw openFailure }
    calls.send("open")
    return size
  }

  package func show(_ frame: Frame) async throws(TerminalError) {
    if let showFailure { throw showFailure }
    shownFrames.withLock { $0.append(frame) }
    frames.send(frame)
    newFrames.send(frame)
    await whileShowing()
  }

  package func suspend() { calls.send("suspend") }

  package func close() { calls.send("close") }

  package func type(_ text: String) {
    channel.send(.input(Array(text.utf8)))
  }

  /// Returns the lines of the first frame that satisfies the condition, whether it is shown before or after the call.
  package func lines(where isWanted: @Sendable ([String]) -> Bool) async -> [String] {
    for await frame in frames.stream where isWanted(frame.lines) { return frame.lines }
    return []
  }
}

extension FakeTerminal {
  /// The lines of all frames so far.
  package var allFrames: [[String]] { shownFrames.withLock { $0.map(\.lines) } }

  /// Types a text, and returns the lines of the first later frame that satisfies the condition.
  package func lines(afterTyping text: String, where isWanted: @Sendable ([String]) -> Bool) async -> [String] {
    let subscription = newFrames.stream.subscribe()
    type(text)
    for await frame in subscription where isWanted(frame.lines) { return frame.lines }
    return []
  }
}
