internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Brings signals to a queue: their handler does no more than write the signal's number into a pipe.
///
/// Unlike a dispatch source of a signal it does not depend on which thread blocks what, and programs that this one
/// starts do not inherit that a signal is ignored. At most one is in use at a time.
final class SignalPipe: Sendable {
  /// Readable when signals have arrived.
  let readEnd: CInt
  private let writeEnd: CInt
  /// What was done at each signal before.
  private let earlierActions: [(signal: CInt, action: sigaction)]

  /// Where the handler writes; -1 while no signals are taken.
  private static let target = Atomic<CInt>(-1)

  /// Takes the signals from now on, except those that the program's parent set to be ignored.
  init(signals: [CInt]) throws(TerminalError) {
    var ends: [CInt] = [-1, -1]
    guard pipe(&ends) == 0 else { throw TerminalError(code: errno, operation: "pipe") }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      // A handler must never wait, and the reader takes what is there.
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    (readEnd, writeEnd) = (ends[0], ends[1])
    earlierActions = signals.map { signal in
      var earlier = sigaction()
      sigaction(signal, nil, &earlier)
      return (signal, earlier)
    }
    .filter { !isIgnoring($0.action) }
    Self.target.store(writeEnd, ordering: .releasing)
    for (signal, _) in earlierActions {
      var action = signalAction(flags: SA_RESTART) { SignalPipe.deliver($0) }
      sigaction(signal, &action, nil)
    }
  }

  /// Leaves the signals to what took them before.
  func stop() {
    for (signal, action) in earlierActions {
      var action = action
      sigaction(signal, &action, nil)
    }
    Self.target.store(-1, ordering: .releasing)
  }

  // Not earlier: a source that follows the pipe keeps it until it has let go of the descriptor, whose number the system
  // may give away at once.
  deinit {
    _ = systemClose(readEnd)
    _ = systemClose(writeEnd)
  }

  /// Lets a signal do what it does by default.
  static func release(_ signal: CInt) {
    var action = signalAction(SIG_DFL)
    sigaction(signal, &action, nil)
  }

  /// Stops the program as SIGTSTP does by default, and returns when it goes on.
  ///
  /// That is at once if no shell is there to continue it: unlike SIGSTOP this signal stops no job without a shell.
  static func stopProgram() {
    var action = signalAction(SIG_DFL)
    var earlier = sigaction()
    sigaction(SIGTSTP, &action, &earlier)
    // A thread of a queue blocks signals. What it raises for itself takes effect before `raise` returns.
    var signals = sigset_t()
    var earlierMask = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTSTP)
    pthread_sigmask(SIG_UNBLOCK, &signals, &earlierMask)
    raise(SIGTSTP)
    pthread_sigmask(SIG_SETMASK, &earlierMask, nil)
    sigaction(SIGTSTP, &earlier, nil)
  }

  /// The signals that have arrived, in order.
  func read() -> [CInt] {
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = systemRead(readEnd, &bytes, bytes.count)
    // Nothing there, or interrupted: the source reports it again.
    return count > 0 ? bytes[..<count].map(CInt.init) : []
  }

  private static func deliver(_ signal: CInt) {
    let code = errno
    var byte = UInt8(truncatingIfNeeded: signal)
    // A full pipe has signals enough to wake its reader.
    _ = systemWrite(target.load(ordering: .acquiring), &byte, 1)
    errno = code
  }
}
