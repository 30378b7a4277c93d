#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The system calls of a ``Terminal``.
///
/// A call that a signal interrupts is retried.
package struct TerminalDevice: Sendable {
  let input: CInt
  let output: CInt

  /// Creates a device from the file descriptors for input and output.
  package init(input: CInt, output: CInt) {
    (self.input, self.output) = (input, output)
  }

  package static let standard = TerminalDevice(input: STDIN_FILENO, output: STDOUT_FILENO)

  /// Whether both input and output are a terminal.
  package var isInteractive: Bool {
    isatty(input) == 1 && isatty(output) == 1
  }

  /// Whether this program is the terminal's foreground job.
  var isInForeground: Bool {
    let group = tcgetpgrp(output)
    // Without job control, no other process shares the terminal.
    return group == -1 || group == getpgrp()
  }

  func modes() throws(TerminalError) -> termios {
    var modes = termios()
    try perform("tcgetattr") { tcgetattr(input, &modes) }
    return modes
  }

  func setModes(_ modes: termios) throws(TerminalError) {
    var modes = modes
    try perform("tcsetattr") { tcsetattr(input, TCSADRAIN, &modes) }
  }

  /// The size of the terminal; 80×24 if the terminal doesn't report one.
  var size: TerminalSize {
    var size = winsize()
    guard ioctl(output, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
      return TerminalSize(columns: 80, rows: 24)
    }
    return TerminalSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
  }

  /// Reads the available bytes, at most 1,024.
  ///
  /// Returns an empty array at the end of the input.
  func read() throws(TerminalError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 1024)
    let count = try perform("read") { systemRead(input, &bytes, bytes.count) }
    return Array(bytes[..<count])
  }

  /// Writes the whole text, in as few calls as the terminal allows.
  package func write(_ text: String) throws(TerminalError) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      do throws(TerminalError) {
        let count = try perform("write") { rest.withUnsafeBytes { systemWrite(output, $0.baseAddress, $0.count) } }
        rest.removeFirst(count)
      } catch {
        // Another program may have made the terminal non-blocking.
        guard error.code == EAGAIN else { throw error }
        var pollRequest = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
        try perform("poll") { poll(&pollRequest, 1, -1) }
      }
    }
  }

  @discardableResult
  private func perform<Result: SignedInteger>(
    _ operation: String, _ call: () -> Result
  ) throws(TerminalError) -> Result {
    while true {
      let result = call()
      if result != -1 { return result }
      let code = errno
      if code != EINTR { throw TerminalError(code: code, operation: operation) }
    }
  }
}
