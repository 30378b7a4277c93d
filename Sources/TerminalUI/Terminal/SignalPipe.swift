internal import Foundation
internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Delivers signals through a pipe: the signal handler only writes the number of the signal into it.
///
/// A dispatch source for a signal isn't suitable, because it requires that the program ignores the signal. Programs
/// that this one starts would then ignore it too. The source also depends on which threads block the signal.
///
/// A signal handler receives only the signal, so it finds the pipe in a global variable. Therefore at most one instance
/// may be in use at a time: create the next one only after ``stop()``.
final class SignalPipe: Sendable {
  /// The descriptor to read from.
  ///
  /// It is readable when signals have arrived.
  let readEnd: CInt
  private let writeEnd: CInt
  /// The actions that were installed before, with their signals.
  private let earlierActions: [(signal: CInt, action: sigaction)]

  private let isHandling = Atomic(true)

  /// Whether the pipe handles the signals, which it does until ``stop()``.
  var isActive: Bool { isHandling.load(ordering: .acquiring) }

  /// The descriptor that the handler writes to; -1 while no instance handles signals.
  private static let target = Atomic<CInt>(-1)

  /// Starts to handle the signals, except those that the program already ignores, such as SIGHUP under `nohup`.
  ///
  /// - Throws: ``TerminalError`` if the pipe can't be created.
  init(signals: [CInt]) throws(TerminalError) {
    var ends: [CInt] = [-1, -1]
    guard pipe(&ends) == 0 else { throw TerminalError(code: errno, operation: "pipe") }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      // Neither the handler nor `read()` may block.
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

  /// Stops handling the signals, and restores the actions that were installed before.
  ///
  /// Must be called exactly once. Signals that arrived earlier can still be read.
  func stop() {
    isHandling.store(false, ordering: .releasing)
    for (signal, action) in earlierActions {
      var action = action
      sigaction(signal, &action, nil)
    }
    Self.target.store(-1, ordering: .releasing)
  }

  // The descriptors are closed here and not in `stop()`, because the system may reuse the number of a closed descriptor
  // immediately. A dispatch source that watches the pipe retains it until the source has released the descriptor.
  deinit {
    _ = systemClose(readEnd)
    _ = systemClose(writeEnd)
  }

  /// Restores the default action of a signal.
  static func restoreDefaultAction(of signal: CInt) {
    var action = signalAction(SIG_DFL)
    sigaction(signal, &action, nil)
  }

  /// Stops the program as SIGTSTP does by default, and returns when the program is continued.
  ///
  /// If there is no shell that could continue the program, this method returns immediately. Unlike SIGSTOP, SIGTSTP
  /// doesn't stop a job without a shell.
  static func stopProgram() {
    var action = signalAction(SIG_DFL)
    var earlier = sigaction()
    sigaction(SIGTSTP, &action, &earlier)
    // The threads of a dispatch queue block signals, and on Darwin they can't raise any. Therefore a new thread
    // unblocks the signal and raises it for itself, so that it takes effect before `raise` returns.
    let continuedSemaphore = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      var signals = sigset_t()
      sigemptyset(&signals)
      sigaddset(&signals, SIGTSTP)
      pthread_sigmask(SIG_UNBLOCK, &signals, nil)
      raise(SIGTSTP)
      continuedSemaphore.signal()
    }
    continuedSemaphore.wait()
    sigaction(SIGTSTP, &earlier, nil)
  }

  /// Returns the signals that have arrived and not been returned yet, up to 64, in the order of arrival.
  func read() -> [CInt] {
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = systemRead(readEnd, &bytes, bytes.count)
    // The call fails if there are no bytes, or if a signal interrupted it. In the second case, the dispatch source that
    // watches the pipe reports it again.
    return count > 0 ? bytes[..<count].map(CInt.init) : []
  }

  private static func deliver(_ signal: CInt) {
    // The interrupted code may be about to read `errno`.
    let savedErrno = errno
    var byte = UInt8(truncatingIfNeeded: signal)
    // If the pipe is full, the signal is lost. The pipe has room for thousands of signals.
    _ = systemWrite(target.load(ordering: .acquiring), &byte, 1)
    errno = savedErrno
  }
}
