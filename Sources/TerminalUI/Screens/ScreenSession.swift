internal import Multicast
internal import Observation

/// A screen and the terminal it has: drawn when it changes, and given the keys, until the user leaves.
///
/// - **Frames**: Only what the screen observes makes one, by a change. While a frame is written, and for a moment after
///   it, changes gather.
/// - **Keys**: Ctrl-C ends every screen, Ctrl-Z gives the terminal to the shell; the other keys are the screen's,
///   one after the other.
/// - **Cancellation**: Cancelling ``run()`` ends it as a quit would.
@MainActor
package final class ScreenSession {
  /// How it came to an end.
  package enum Ending: Sendable, Hashable {
    case quit
    /// By Ctrl-C.
    case interrupted
    /// The terminal has gone.
    case hungUp
    case failed(TerminalError)
  }

  /// The least time from one frame to the next: one sixtieth of a second.
  package nonisolated static let frameDuration = Duration.nanoseconds(16_666_667)
  /// How long what began as the sequence of a key may take to go on, before it is the key Escape, or none.
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
  private var reads = 0
  /// The keys that wait for what one before them does; nil while there is nothing to wait for.
  private var waitingKeys: [Key]?
  private let commands = MulticastRelay<Command>(buffering: .unbounded)
  /// Counts the reasons to draw.
  private let changes = CurrentValueRelay(0)

  /// Creates a session.
  ///
  /// - Parameters:
  ///   - screen: What is shown.
  ///   - terminal: Where; taken over by ``run()`` only.
  ///   - pause: Waits so long between frames, and for the rest of a key.
  package init(
    of screen: any LiveScreen, on terminal: any TerminalType,
    pause: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  ) {
    self.screen = screen
    self.terminal = terminal
    self.pause = pause
  }

  /// Takes the terminal over, shows the screen, and returns when the user has left.
  package func run() async -> Ending {
    let events = terminal.events.subscribe()
    let commands = commands.stream.subscribe()
    do throws(TerminalError) {
      size = try await terminal.open()
    } catch {
      return .failed(error)
    }
    let ending = await withDiscardingTaskGroup { group in
      group.addTask { await self.follow(events) }
      group.addTask { await self.draw() }
      group.addTask { await self.screen.run() }
      defer { group.cancelAll() }
      for await command in commands {
        switch command {
        // On the main actor at once, so that what the keys ask for begins in their order.
        case .perform(let action): group.addTask(operation: action)
        case .end(let ending): return ending
        }
      }
      return .quit
    }
    await terminal.close()
    return ending
  }

  // MARK: Input

  private func follow(_ events: MulticastSubscription<TerminalEvent, Never>) async {
    for await event in events {
      switch event {
      case .input(let bytes): read(bytes)
      case .resized(let size):
        self.size = size
        changed()
      case .ended:
        for key in decoder.finish() { press(key) }
        commands.send(.end(.hungUp))
      }
    }
  }

  private func read(_ bytes: [UInt8]) {
    reads += 1
    for key in decoder.decode(bytes) { press(key) }
    guard decoder.isSequencePending else { return }
    let read = reads
    commands.send(
      .perform {
        guard !(await self.isCancelled(during: Self.escapeDuration)), read == self.reads else { return }
        for key in self.decoder.finish() { self.press(key) }
      })
  }

  private func press(_ key: Key) {
    switch key {
    case .control("c"): commands.send(.end(.interrupted))
    case .control("z"): commands.send(.perform { await self.terminal.suspend() })
    case _ where waitingKeys != nil: waitingKeys?.append(key)
    default:
      switch screen.press(key, size: size) {
      case .perform(let action): commands.send(.perform(action))
      case .performFirst(let action):
        waitingKeys = []
        commands.send(
          .perform {
            await action()
            if !Task.isCancelled { self.pressWaitingKeys() }
          })
      case .quit: commands.send(.end(.quit))
      case nil: break
      }
    }
  }

  private func pressWaitingKeys() {
    let keys = waitingKeys ?? []
    waitingKeys = nil
    for key in keys { press(key) }
  }

  // MARK: Frames

  private func changed() {
    changes.update { $0 &+= 1 }
  }

  private func draw() async {
    for await _ in changes.stream {
      let frame = withObservationTracking {
        screen.frame(size: size)
      } onChange: { [changes] in
        // Before the change is made; the frame is drawn by a job of its own, after it.
        changes.update { $0 &+= 1 }
      }
      guard let frame else { continue }
      do throws(TerminalError) {
        try await terminal.show(frame)
      } catch {
        commands.send(.end(.failed(error)))
        return
      }
      if await isCancelled(during: Self.frameDuration) { return }
    }
  }

  private func isCancelled(during duration: Duration) async -> Bool {
    do {
      try await pause(duration)
      return false
    } catch {
      // Nothing but a cancellation ends a pause early.
      return true
    }
  }
}
