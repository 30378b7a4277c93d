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

/// The terminal this program runs in.
///
/// - **Threads**: It works on a queue of its own, so a slow terminal holds none of the threads that all tasks share.
/// - **Restoring**: The terminal gets its modes and its screen back when it is closed, when a signal ends or stops the
///   program, and when the program crashes.
package actor Terminal: TerminalType {
  /// The alternate screen, no cursor, no wrapping at the right edge, and pasted text distinguished from typed.
  private static let takeover = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l\u{1B}[?2004h"
  private static let ends = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
  /// How long a terminal that takes nothing may hold up the end by a signal.
  private static let patience = DispatchTimeInterval.seconds(2)

  private let device: TerminalDevice
  private let executor = DispatchQueueExecutor(label: "moments.terminal")
  /// Where signals arrive, also while the actor waits for the terminal.
  private let signalQueue = DispatchQueue(label: "moments.terminal.signals")
  private let channel = MulticastChannel<TerminalEvent, Never>(buffering: .unbounded)
  private var renderer: FrameRenderer
  private var signals: SignalPipe?
  private var sources: [any DispatchSourceProtocol] = []
  /// What is in it are the sources that have not let go of their descriptors.
  private let watched = DispatchGroup()
  /// How many milliseconds the terminal has to take what gives it back.
  private let restorationPatience: Int
  /// The modes to go back to; nil while the terminal is not taken over.
  private var earlierModes: termios?

  /// Creates the terminal on which the program was started.
  package init(capabilities: TerminalCapabilities) {
    self.init(device: .standard, capabilities: capabilities)
  }

  /// - Parameter restorationPatience: How many milliseconds a terminal has to take what gives it back.
  init(
    device: TerminalDevice, capabilities: TerminalCapabilities, restorationPatience: Int = TerminalRestoration.patience
  ) {
    self.device = device
    self.restorationPatience = restorationPatience
    renderer = FrameRenderer(capabilities: capabilities)
  }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  package nonisolated var events: MulticastStream<TerminalEvent, Never> { channel.stream }

  package func open() throws(TerminalError) -> TerminalSize {
    precondition(signals == nil, "Terminal: 'open()' must be called once.")
    let signals = try SignalPipe(signals: Self.ends + [SIGWINCH, SIGTSTP, SIGCONT])
    self.signals = signals
    do throws(TerminalError) {
      try takeOver()
    } catch {
      giveBack()
      stopSignals()
      channel.finish()
      throw error
    }
    follow(device.input, on: executor.queue) { [weak self] in self?.assumeIsolated { $0.readInput() } }
    follow(signals.readEnd, on: signalQueue) { [weak self] in
      for signal in signals.read() { self?.receive(signal) }
    }
    return device.size
  }

  package func show(_ frame: Frame) throws(TerminalError) {
    // Between a signal and its end the terminal may be the shell's.
    guard earlierModes != nil else { return }
    let text = renderer.render(frame)
    if !text.isEmpty { try device.write(text) }
  }

  package func suspend() {
    // To the whole job, as the terminal itself would do it.
    kill(0, SIGTSTP)
  }

  package func close() async {
    giveBack()
    for source in sources { source.cancel() }
    sources = []
    stopSignals()
    channel.finish()
    await withCheckedContinuation { continuation in
      watched.notify(queue: executor.queue) { continuation.resume() }
    }
  }

  private func stopSignals() {
    signals?.stop()
    signals = nil
  }

  private func takeOver() throws(TerminalError) {
    // Where the terminal was not given back before the program was stopped, its modes may still be the raw ones.
    let modes = if let earlierModes { earlierModes } else { try device.modes() }
    var raw = modes
    cfmakeraw(&raw)
    TerminalRestoration.arm(device, modes: modes, patience: restorationPatience)
    earlierModes = modes
    try device.setModes(raw)
    try device.write(Self.takeover)
    renderer.forget()
  }

  private func giveBack() {
    guard earlierModes != nil else { return }
    earlierModes = nil
    TerminalRestoration.disarm()
  }

  /// Does something on a queue whenever there is something to read.
  ///
  /// A descriptor must not be closed before its source has let go of it: what next has its number would not be watched.
  private func follow(_ descriptor: CInt, on queue: DispatchQueue, _ action: @escaping @Sendable () -> Void) {
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
    source.setEventHandler(handler: action)
    watched.enter()
    // Keeps what the action reads open until then.
    source.setCancelHandler { [watched] in withExtendedLifetime(action) { watched.leave() } }
    source.activate()
    sources.append(source)
  }

  private func readInput() {
    // A read in the background fails instead of returning keys.
    guard earlierModes != nil else { return }
    do throws(TerminalError) {
      let bytes = try device.read()
      if !bytes.isEmpty {
        channel.send(.input(bytes))
        return
      }
    } catch {
      if error.code == EAGAIN { return }
    }
    // The terminal has gone. Its source would report that for ever.
    sources.first?.cancel()
    channel.send(.ended)
  }

  /// Brings a signal to the actor.
  ///
  /// One that ends the program does so also where the actor waits for a terminal that takes nothing.
  private nonisolated func receive(_ signal: CInt) {
    executor.queue.async { [weak self] in self?.assumeIsolated { $0.handle(signal) } }
    if Self.ends.contains(signal) {
      signalQueue.asyncAfter(deadline: .now() + Self.patience) { Self.end(by: signal) }
    }
  }

  private static func end(by signal: CInt) {
    TerminalRestoration.disarm()
    SignalPipe.release(signal)
    kill(getpid(), signal)
  }

  private func handle(_ signal: CInt) {
    // What arrived before the terminal was closed is for the handlers that were installed before.
    guard signals != nil else { return }
    switch signal {
    case SIGWINCH: channel.send(.resized(device.size))
    case SIGTSTP:
      giveBack()
      SignalPipe.stopProgram()
      // No SIGCONT comes where nothing was stopped.
      comeBack()
    case SIGCONT: comeBack()
    default:
      giveBack()
      Self.end(by: signal)
    }
  }

  /// Takes the terminal over again after the program was stopped, but not from another job.
  private func comeBack() {
    guard device.isInForeground else {
      giveBack()
      // To be continued with a SIGCONT, which brings it here again.
      SignalPipe.stopProgram()
      return
    }
    // A shell has set its own modes meanwhile, also if this program was stopped without a signal it could handle.
    do throws(TerminalError) {
      try takeOver()
      channel.send(.resized(device.size))
    } catch {
      channel.send(.ended)
    }
  }
}
