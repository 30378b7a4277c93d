internal import DataStore
internal import Dispatch
package import Multicast

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The terminal that this program runs in.
///
/// - **Threads**: The actor runs on its own queue, so a slow terminal blocks no thread of the cooperative pool.
/// - **Restoration**: The modes and the screen of the terminal are restored when the terminal is closed and when the
///   program crashes. They are also restored when `SIGINT`, `SIGTERM`, `SIGHUP` or `SIGQUIT` ends the program, and when
///   `SIGTSTP` stops it.
package actor Terminal: TerminalType {
  /// Shows the alternate screen, hides the cursor, disables wrapping at the right edge, and requests marks around
  /// pasted text.
  private static let takeoverSequence = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[?2004h"
  private static let terminatingSignals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
  /// The time after which a terminating signal ends the program even if the terminal accepts no output.
  private static let terminationTimeout = DispatchTimeInterval.seconds(2)

  private let device: TerminalDevice
  private let executor = DispatchQueueExecutor(label: "TerminalUI.Terminal")
  /// The queue on which signals arrive, even while the terminal blocks the actor.
  private let signalQueue = DispatchQueue(label: "TerminalUI.Terminal.signals")
  private let channel = MulticastChannel<TerminalEvent, Never>(buffering: .unbounded)
  private var renderer: FrameRenderer
  private(set) var signalPipe: SignalPipe?
  /// Whether ``open()`` was called and could create the signal pipe.
  ///
  /// The channel of a closed terminal has finished, so the terminal can't be opened again.
  private var wasOpened = false
  private var sources: [ReadSource] = []
  /// The group of the sources that haven't released their descriptors yet.
  private let pendingReleases = DispatchGroup()
  private let restorationTimeout: Int
  /// The modes to restore; `nil` while the terminal is not taken over.
  private var originalModes: termios?

  /// Creates the terminal in which the program was started.
  package init(capabilities: TerminalCapabilities) {
    self.init(device: .standard, capabilities: capabilities)
  }

  /// Creates a terminal on a device.
  ///
  /// - Parameter restorationTimeout: The time limit for writing ``TerminalRestoration/sequence``, in milliseconds.
  init(
    device: TerminalDevice, capabilities: TerminalCapabilities, restorationTimeout: Int = TerminalRestoration.timeout
  ) {
    self.device = device
    self.restorationTimeout = restorationTimeout
    renderer = FrameRenderer(capabilities: capabilities)
  }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  package nonisolated var events: MulticastStream<TerminalEvent, Never> { channel.stream }

  package func open() throws(TerminalError) -> TerminalSize {
    precondition(!wasOpened, "Terminal: 'open()' must be called only once.")
    let signalPipe = try SignalPipe(signals: Self.terminatingSignals + [SIGWINCH, SIGTSTP, SIGCONT])
    wasOpened = true
    self.signalPipe = signalPipe
    do throws(TerminalError) {
      try takeOver()
      try watch(device.input, on: executor.queue) { [weak self] in
        self?.assumeIsolated { $0.readInput() } ?? false
      }
      try watch(signalPipe.readEnd, on: signalQueue) { [weak self] in
        for signal in signalPipe.read() { self?.receive(signal, through: signalPipe) }
        return true
      }
    } catch {
      restore()
      cancelSources()
      stopSignalPipe()
      channel.finish()
      throw error
    }
    return device.size
  }

  package func show(_ frame: Frame) throws(TerminalError) {
    // While the terminal isn't taken over, the shell may be using it.
    guard originalModes != nil else { return }
    let text = renderer.render(frame)
    if !text.isEmpty { try device.write(text) }
  }

  package func suspend() {
    // The signal goes to the whole job, as it does when the terminal itself sends it.
    kill(0, SIGTSTP)
  }

  package func close() async {
    restore()
    cancelSources()
    stopSignalPipe()
    channel.finish()
    await withCheckedContinuation { continuation in
      pendingReleases.notify(queue: executor.queue) { continuation.resume() }
    }
  }

  private func cancelSources() {
    for source in sources { source.cancel() }
    sources = []
  }

  private func stopSignalPipe() {
    signalPipe?.stop()
    signalPipe = nil
  }

  private func takeOver() throws(TerminalError) {
    // If the program was stopped before it restored the terminal, the current modes may still be the raw ones.
    let modes = if let originalModes { originalModes } else { try device.modes() }
    var raw = modes
    cfmakeraw(&raw)
    TerminalRestoration.arm(device, modes: modes, timeout: restorationTimeout)
    originalModes = modes
    try device.setModes(raw)
    try device.write(Self.takeoverSequence)
    renderer.forget()
  }

  private func restore() {
    guard originalModes != nil else { return }
    originalModes = nil
    TerminalRestoration.restoreAndDisarm()
  }

  /// Performs an action on a queue whenever a descriptor is readable, until the action returns `false`.
  ///
  /// The descriptor must stay open until its source has released it.
  private func watch(
    _ descriptor: CInt, on queue: DispatchQueue, _ action: @escaping @Sendable () -> Bool
  ) throws(TerminalError) {
    do throws(SystemError) {
      pendingReleases.enter()
      // The closure for the release retains the action. The action for signals retains the pipe, whose `deinit` closes
      // the descriptor. The descriptor of the input isn't closed by this actor.
      sources.append(
        try ReadSource(of: descriptor, on: queue, onReadable: action) { [pendingReleases] in
          withExtendedLifetime(action) { pendingReleases.leave() }
        })
    } catch {
      pendingReleases.leave()
      throw TerminalError(code: error.code, operation: error.operation)
    }
  }

  /// Reads what was typed, and returns whether more may follow.
  private func readInput() -> Bool {
    // While another job is in the foreground, a read fails although the terminal isn't disconnected.
    guard originalModes != nil else { return true }
    do throws(TerminalError) {
      let bytes = try device.read()
      if !bytes.isEmpty {
        channel.send(.input(bytes))
        return true
      }
    } catch {
      if error.code == EAGAIN { return true }
    }
    // The terminal was disconnected.
    channel.send(.ended)
    return false
  }

  /// Forwards a signal to the actor.
  ///
  /// A terminating signal ends the program even if the actor is blocked by a terminal that accepts no output.
  nonisolated func receive(_ signal: CInt, through pipe: SignalPipe) {
    executor.queue.async { [weak self] in self?.assumeIsolated { $0.handle(signal) } }
    if Self.terminatingSignals.contains(signal) {
      signalQueue.asyncAfter(deadline: .now() + Self.terminationTimeout) { Self.terminate(by: signal, through: pipe) }
    }
  }

  /// Ends the program by a signal that the actor hasn't handled in time, unless the pipe has been stopped.
  static func terminate(by signal: CInt, through pipe: SignalPipe) {
    // Once the pipe is stopped, `handle(_:)` passes signals on to the handlers that were installed before the pipe.
    if pipe.isActive { terminate(by: signal) }
  }

  private static func terminate(by signal: CInt) {
    TerminalRestoration.restoreAndDisarm()
    SignalPipe.restoreDefaultAction(of: signal)
    kill(getpid(), signal)
  }

  private func handle(_ signal: CInt) {
    guard signalPipe != nil else {
      // The terminal was closed after the signal had arrived, so the signal is raised again for the handler that was
      // installed before the pipe.
      kill(getpid(), signal)
      return
    }
    switch signal {
    case SIGWINCH: channel.send(.resized(device.size))
    case SIGTSTP:
      restore()
      SignalPipe.stopProgram()
      // If the program could not be stopped, no SIGCONT follows.
      resume()
    case SIGCONT: resume()
    default:
      restore()
      Self.terminate(by: signal)
    }
  }

  /// Takes over the terminal again after the program was continued, unless another job is in the foreground.
  private func resume() {
    guard device.isInForeground else {
      restore()
      // When the program is continued, its SIGCONT causes another call of this method.
      SignalPipe.stopProgram()
      return
    }
    // The shell may have set its own modes while the program was stopped. So the terminal is taken over even if it
    // wasn't restored before, as after SIGSTOP.
    do throws(TerminalError) {
      try takeOver()
      channel.send(.resized(device.size))
    } catch {
      channel.send(.ended)
    }
  }
}
