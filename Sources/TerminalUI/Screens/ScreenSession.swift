internal import Multicast
internal import Observation

/// Shows a screen on a terminal, and delivers keys to the screen, until the user leaves.
///
/// - **Frames**: A frame is drawn at the start, after a ``TerminalEvent/resized(_:)`` event, and after a change of an
///   `@Observable` property that the last frame was drawn from. Changes that occur while a frame is written, or within
///   ``frameDuration`` after it, are coalesced into the next frame.
/// - **Keys**: Ctrl-C ends the session, and Ctrl-Z suspends the program. The other keys are delivered to the screen,
///   one at a time.
/// - **Cancellation**: Cancelling the task of ``run()`` ends the session as a quit does.
@MainActor
package final class ScreenSession {
  /// The reason why a session ended.
  package enum Ending: Sendable, Hashable {
    case quit
    /// The user pressed Ctrl-C.
    case interrupted
    /// The terminal was disconnected.
    case hungUp
    case failed(TerminalError)
  }

  /// The minimum time between two frames: one sixtieth of a second.
  package nonisolated static let frameDuration = Duration.nanoseconds(16_666_667)
  /// The time within which an incomplete key sequence must continue.
  ///
  /// After this time, a lone `ESC` is the Escape key, and any other incomplete sequence is discarded.
  package nonisolated static let escapeDuration = Duration.milliseconds(50)

  private enum Command: Sendable {
    case perform(@MainActor @Sendable () async -> Void)
    case end(Ending)
  }

  private let screen: any LiveScreen
  private let terminal: any TerminalType
  private let pause: @Sendable (Duration) async throws -> Void

  private var size = TerminalSize(columns: 0, rows: 0)
  private var decoder = KeyDecoder()
  /// The number of input events so far, which shows after ``escapeDuration`` whether a key sequence has continued.
  private var inputCount = 0
  /// The keys to deliver when the running `performFirst` action has completed; `nil` while no such action runs.
  private var pendingKeys: [Key]?
  private let commands = MulticastRelay<Command>(buffering: .unbounded)
  /// A counter that each request for a new frame increments.
  private let frameRequests = CurrentValueRelay(0)

  /// Creates a session.
  ///
  /// - Parameters:
  ///   - screen: The screen to show.
  ///   - terminal: The terminal to show the screen on. It isn't taken over before ``run()``.
  ///   - pause: Suspends for a duration, between two frames and while a key sequence is incomplete.
  package init(
    of screen: any LiveScreen, on terminal: any TerminalType,
    pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.screen = screen
    self.terminal = terminal
    self.pause = pause
  }

  /// Takes over the terminal, shows the screen, and returns when the session has ended and the terminal is restored.
  package func run() async -> Ending {
    let events = terminal.events.subscribe()
    let commands = commands.stream.subscribe()
    do throws(TerminalError) {
      size = try await terminal.open()
    } catch {
      return .failed(error)
    }
    let ending = await withDiscardingTaskGroup { group in
      group.addTask { await self.handle(events) }
      group.addTask { await self.draw() }
      group.addTask { await self.screen.run() }
      defer { group.cancelAll() }
      for await command in commands {
        switch command {
        // The action isn't wrapped in another closure, so it is enqueued on the main actor directly. Therefore actions
        // start in the order of their keys.
        case .perform(let action): group.addTask(operation: action)
        case .end(let ending): return ending
        }
      }
      // Only cancellation ends the loop.
      return .quit
    }
    await terminal.close()
    return ending
  }

  // MARK: Input

  private func handle(_ events: MulticastSubscription<TerminalEvent, Never>) async {
    for await event in events {
      switch event {
      case .input(let bytes): handleInput(bytes)
      case .resized(let size):
        self.size = size
        requestFrame()
      case .ended:
        for key in decoder.finish() { press(key) }
        commands.send(.end(.hungUp))
      }
    }
  }

  private func handleInput(_ bytes: [UInt8]) {
    inputCount += 1
    for key in decoder.decode(bytes) { press(key) }
    guard decoder.isSequencePending else { return }
    let inputNumber = inputCount
    commands.send(
      .perform {
        guard !(await self.pauseIsCancelled(for: Self.escapeDuration)), inputNumber == self.inputCount else { return }
        for key in self.decoder.finish() { self.press(key) }
      })
  }

  private func press(_ key: Key) {
    switch key {
    case .control("c"): commands.send(.end(.interrupted))
    case .control("z"): commands.send(.perform { await self.terminal.suspend() })
    case _ where pendingKeys != nil: pendingKeys?.append(key)
    default:
      switch screen.press(key, size: size) {
      case .perform(let action): commands.send(.perform(action))
      case .performFirst(let action):
        pendingKeys = []
        commands.send(
          .perform {
            await action()
            if !Task.isCancelled { self.pressPendingKeys() }
          })
      case .quit: commands.send(.end(.quit))
      case nil: break
      }
    }
  }

  private func pressPendingKeys() {
    let keys = pendingKeys ?? []
    pendingKeys = nil
    for key in keys { press(key) }
  }

  // MARK: Frames

  private func requestFrame() {
    frameRequests.update { $0 &+= 1 }
  }

  private func draw() async {
    for await _ in frameRequests.stream {
      let frame = withObservationTracking {
        screen.frame(size: size)
      } onChange: { [frameRequests] in
        // Called before the change is made. The frame is drawn by a later job, after the change.
        frameRequests.update { $0 &+= 1 }
      }
      guard let frame else { continue }
      do throws(TerminalError) {
        try await terminal.show(frame)
      } catch {
        commands.send(.end(.failed(error)))
        return
      }
      if await pauseIsCancelled(for: Self.frameDuration) { return }
    }
  }

  /// Pauses for a duration, and returns whether the pause was cancelled.
  private func pauseIsCancelled(for duration: Duration) async -> Bool {
    do {
      try await pause(duration)
      return false
    } catch {
      // Only cancellation ends a pause early.
      return true
    }
  }
}
