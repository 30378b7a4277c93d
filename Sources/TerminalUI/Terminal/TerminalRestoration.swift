internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Restores a terminal, even from the signal handler of a crash.
///
/// A signal handler may call only async-signal-safe functions: it must not allocate memory, take a lock or access a
/// Swift object. Therefore everything that it needs is prepared in memory, and is found through two atomic words. The
/// first is the address of the data of the terminal. A thread takes the address out by an atomic exchange before it
/// restores the terminal or frees the data, so the data is never freed while it is used. The second is the address of
/// the signal actions that were installed before the crash handlers. They are never freed.
enum TerminalRestoration {
  /// The output that restores a terminal.
  ///
  /// It cancels an incomplete control sequence, and ends an incomplete frame. Then it resets the style, turns off the
  /// marks around pasted text, turns on wrapping, and shows the cursor and the original screen.
  static let sequence = "\u{18}\u{1B}[?2026l\u{1B}[m\u{1B}[?2004l\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l"

  /// The time limit for writing ``sequence``, in milliseconds.
  static let timeout = 1_000

  private struct PreparedData {
    let device: TerminalDevice
    var modes: termios
    let timeout: Int
    let bytes: UnsafeMutableBufferPointer<UInt8>
  }

  /// The address of the prepared data; 0 while no terminal is taken over.
  private static let preparedAddress = Atomic<UInt>(0)

  /// The address of the signal actions that were installed before the crash handlers, indexed by signal number; 0 until
  /// the first terminal is taken over.
  private static let earlierActionsAddress = Atomic<UInt>(0)

  private static let crashSignals = [SIGSEGV, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE]

  /// Prepares the restoration of a terminal.
  ///
  /// From then on, ``restoreAndDisarm()`` or a crash restores these modes.
  static func arm(_ device: TerminalDevice, modes: termios, timeout: Int = timeout) {
    let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: sequence.utf8.count)
    _ = bytes.initialize(fromContentsOf: Array(sequence.utf8))
    let new = UnsafeMutablePointer<PreparedData>.allocate(capacity: 1)
    new.initialize(to: PreparedData(device: device, modes: modes, timeout: timeout, bytes: bytes))
    freeData(at: preparedAddress.exchange(UInt(bitPattern: new), ordering: .acquiringAndReleasing))
    installCrashHandlers()
  }

  /// Restores the terminal.
  ///
  /// From then on, a crash no longer restores it.
  ///
  /// - Returns: Whether there was a terminal to restore.
  @discardableResult
  static func restoreAndDisarm() -> Bool {
    let address = preparedAddress.exchange(0, ordering: .acquiringAndReleasing)
    guard let pointer = UnsafeMutablePointer<PreparedData>(bitPattern: address) else { return false }
    restore(pointer)
    freeData(at: address)
    return true
  }

  private static func freeData(at address: UInt) {
    guard let pointer = UnsafeMutablePointer<PreparedData>(bitPattern: address) else { return }
    pointer.pointee.bytes.deallocate()
    pointer.deinitialize(count: 1)
    pointer.deallocate()
  }

  private static func restore(_ pointer: UnsafeMutablePointer<PreparedData>) {
    // The modes come first, and without waiting for pending output, because a stalled terminal may accept no output. A
    // failure is ignored, because it usually means that the terminal is gone.
    _ = tcsetattr(pointer.pointee.device.input, TCSANOW, &pointer.pointee.modes)
    write(pointer.pointee.bytes, to: pointer.pointee.device.output, timeout: pointer.pointee.timeout)
  }

  /// Writes as many bytes as the terminal accepts within a timeout in milliseconds.
  private static func write(_ bytes: UnsafeMutableBufferPointer<UInt8>, to descriptor: CInt, timeout: Int) {
    let deadline = monotonicMilliseconds() + timeout
    var written = 0
    while written < bytes.count {
      let remainingTime = max(0, deadline - monotonicMilliseconds())
      var pollRequest = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      let readyCount = poll(&pollRequest, 1, CInt(remainingTime))
      if readyCount == 0 || readyCount == -1 && errno != EINTR { return }
      if readyCount == -1 { continue }
      // One byte at a time, because a blocking descriptor waits if the terminal has no room for all bytes of a call.
      if systemWrite(descriptor, bytes.baseAddress! + written, 1) == 1 {
        written += 1
      } else if errno != EINTR && (errno != EAGAIN || remainingTime == 0) {
        return
      }
    }
  }

  private static func monotonicMilliseconds() -> Int {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Int(now.tv_sec) * 1_000 + Int(now.tv_nsec) / 1_000_000
  }

  /// Installs the crash handlers, unless they are installed already.
  ///
  /// They stay installed until a crash. While no terminal is taken over, they only pass the signal on. If they were
  /// removed, the next installation would have to save the earlier actions again, and the old copy couldn't be freed:
  /// the crash handler on another thread could be using it.
  private static func installCrashHandlers() {
    guard earlierActionsAddress.load(ordering: .acquiring) == 0 else { return }
    // The numbers of the crash signals are less than 64.
    let earlier = UnsafeMutablePointer<sigaction>.allocate(capacity: 64)
    earlier.initialize(repeating: sigaction(), count: 64)
    for signal in crashSignals { sigaction(signal, nil, earlier + Int(signal)) }
    earlierActionsAddress.store(UInt(bitPattern: earlier), ordering: .releasing)
    for signal in crashSignals {
      // The handler runs on the alternate stack, if there is one, because the crash may be a stack overflow.
      var action = signalAction(flags: SA_ONSTACK) { TerminalRestoration.handleCrash($0) }
      sigaction(signal, &action, nil)
    }
  }

  /// Restores the terminal, then passes the signal on to the handler that was installed before.
  ///
  /// The signal is blocked while this handler runs. When it is raised again, it is delivered right after this handler
  /// returns. The earlier handler then sees the registers of the crash, so that its backtrace shows where the program
  /// crashed.
  private static func handleCrash(_ signal: CInt) {
    let address = preparedAddress.exchange(0, ordering: .acquiringAndReleasing)
    if let pointer = UnsafeMutablePointer<PreparedData>(bitPattern: address) { restore(pointer) }
    let earlier = UnsafeMutablePointer<sigaction>(bitPattern: earlierActionsAddress.load(ordering: .acquiring))
    if let earlier {
      sigaction(signal, earlier + Int(signal), nil)
    } else {
      var action = signalAction(SIG_DFL)
      sigaction(signal, &action, nil)
    }
    raise(signal)
  }
}
