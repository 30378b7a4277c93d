#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The system calls of a ``Terminal``, each in one place, and tried again when a signal interrupts it.
package struct TerminalDevice: Sendable {
  let input: CInt
  let output: CInt

  /// Names the two sides of a terminal by their file descriptors.
  package init(input: CInt, output: CInt) {
    (self.input, self.output) = (input, output)
  }

  package static let standard = TerminalDevice(input: STDIN_FILENO, output: STDOUT_FILENO)

  /// Whether there is a person at both ends.
  package var isInteractive: Bool {
    isatty(input) == 1 && isatty(output) == 1
  }

  /// Whether this program has the terminal, and not another job of the same shell.
  var isInForeground: Bool {
    let group = tcgetpgrp(output)
    // Without job control no other process shares it.
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

  /// How many cells it has, or 80×24 where it does not say.
  var size: TerminalSize {
    var size = winsize()
    guard ioctl(output, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
      return TerminalSize(columns: 80, rows: 24)
    }
    return TerminalSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
  }

  /// The bytes that are there; none at the end of input.
  func read() throws(TerminalError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 1024)
    let count = try perform("read") { systemRead(input, &bytes, bytes.count) }
    return Array(bytes[..<count])
  }

  /// Writes all bytes of a text, in as few calls as the terminal allows.
  package func write(_ text: String) throws(TerminalError) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      do throws(TerminalError) {
        let count = try perform("write") { rest.withUnsafeBytes { systemWrite(output, $0.baseAddress, $0.count) } }
        rest.removeFirst(count)
      } catch {
        // Another program may have made the terminal not block.
        guard error.code == EAGAIN else { throw error }
        var wanted = pollfd(fd: output, events: Int16(POLLOUT), revents: 0)
        try perform("poll") { poll(&wanted, 1, -1) }
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
