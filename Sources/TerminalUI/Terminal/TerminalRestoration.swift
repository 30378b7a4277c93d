internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// How a terminal is given back, also from the handler of a signal in the middle of a crash.
///
/// There only what is async-signal-safe may be called: no memory is taken, no lock, no Swift object is touched. So all
/// that is needed is prepared in memory that is never freed while a terminal is taken over, and found by one atomic
/// word.
enum TerminalRestoration {
  /// Ends a sequence that was cut off and a frame that was begun; plain style, pasting, wrapping, the cursor, the old screen.
  static let sequence = "\u{18}\u{1B}[?2026l\u{1B}[m\u{1B}[?2004l\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  /// How many milliseconds a terminal that takes nothing is waited for.
  static let patience = 1_000

  private struct Prepared {
    let device: TerminalDevice
    var modes: termios
    let patience: Int
    let bytes: UnsafeMutableBufferPointer<UInt8>
  }

  /// The address of what is prepared; 0 while no terminal is taken over.
  private static let prepared = Atomic<UInt>(0)

  /// Where signals were handled before, by their number.
  private static let earlierHandlers = Atomic<UInt>(0)

  private static let crashes = [SIGSEGV, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE]

  /// From here on ``restore()`` gives the terminal back with these modes, and a crash does so first of all.
  static func arm(_ device: TerminalDevice, modes: termios, patience: Int = patience) {
    let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: sequence.utf8.count)
    _ = bytes.initialize(fromContentsOf: Array(sequence.utf8))
    let new = UnsafeMutablePointer<Prepared>.allocate(capacity: 1)
    new.initialize(to: Prepared(device: device, modes: modes, patience: patience, bytes: bytes))
    free(prepared.exchange(UInt(bitPattern: new), ordering: .acquiringAndReleasing))
    installCrashHandlers()
  }

  /// Gives the terminal back, and nothing restores it any more.
  ///
  /// - Returns: Whether there was something to give back.
  @discardableResult
  static func disarm() -> Bool {
    let address = prepared.exchange(0, ordering: .acquiringAndReleasing)
    guard let pointer = UnsafeMutablePointer<Prepared>(bitPattern: address) else { return false }
    restore(pointer)
    free(address)
    removeCrashHandlers()
    return true
  }

  private static func free(_ address: UInt) {
    guard let pointer = UnsafeMutablePointer<Prepared>(bitPattern: address) else { return }
    pointer.pointee.bytes.deallocate()
    pointer.deinitialize(count: 1)
    pointer.deallocate()
  }

  private static func restore(_ pointer: UnsafeMutablePointer<Prepared>) {
    // First, and without waiting for what is still to be shown: a stalled terminal may never show it. A failure can't
    // be reported, because the terminal has gone.
    _ = tcsetattr(pointer.pointee.device.input, TCSANOW, &pointer.pointee.modes)
    write(pointer.pointee.bytes, to: pointer.pointee.device.output, patience: pointer.pointee.patience)
  }

  /// Writes as much as the terminal takes within so many milliseconds.
  private static func write(_ bytes: UnsafeMutableBufferPointer<UInt8>, to descriptor: CInt, patience: Int) {
    let deadline = milliseconds() + patience
    var written = 0
    while written < bytes.count {
      let rest = max(0, deadline - milliseconds())
      var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      let ready = poll(&wanted, 1, CInt(rest))
      if ready == 0 || ready == -1 && errno != EINTR { return }
      if ready == -1 { continue }
      // One at a time: for more than there is room for, a terminal that blocks would wait.
      if systemWrite(descriptor, bytes.baseAddress! + written, 1) == 1 {
        written += 1
      } else if errno != EINTR && (errno != EAGAIN || rest == 0) {
        return
      }
    }
  }

  private static func milliseconds() -> Int {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Int(now.tv_sec) * 1_000 + Int(now.tv_nsec) / 1_000_000
  }

  private static func installCrashHandlers() {
    guard earlierHandlers.load(ordering: .acquiring) == 0 else { return }
    let earlier = UnsafeMutablePointer<sigaction>.allocate(capacity: 64)
    earlier.initialize(repeating: sigaction(), count: 64)
    earlierHandlers.store(UInt(bitPattern: earlier), ordering: .releasing)
    for signal in crashes {
      // On the alternate stack where there is one: the crash may be that there is no stack left.
      var action = signalAction(flags: SA_ONSTACK) { TerminalRestoration.crash($0) }
      sigaction(signal, &action, earlier + Int(signal))
    }
  }

  private static func removeCrashHandlers() {
    let address = earlierHandlers.exchange(0, ordering: .acquiringAndReleasing)
    guard let earlier = UnsafeMutablePointer<sigaction>(bitPattern: address) else { return }
    for signal in crashes { sigaction(signal, earlier + Int(signal), nil) }
    earlier.deallocate()
  }

  /// Gives the terminal back, then lets the signal do what it would have done.
  ///
  /// The signal is blocked while its handler runs. Raised again it is delivered right after, to the earlier handler and
  /// with the registers of the crash, so that a backtrace shows the place of the crash.
  private static func crash(_ signal: CInt) {
    let address = prepared.exchange(0, ordering: .acquiringAndReleasing)
    if let pointer = UnsafeMutablePointer<Prepared>(bitPattern: address) { restore(pointer) }
    let earlier = UnsafeMutablePointer<sigaction>(bitPattern: earlierHandlers.load(ordering: .acquiring))
    if let earlier {
      sigaction(signal, earlier + Int(signal), nil)
    } else {
      var action = signalAction(SIG_DFL)
      sigaction(signal, &action, nil)
    }
    raise(signal)
  }
}
