internal import Foundation

/// A call to the terminal that failed.
struct TerminalError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The system's error number, `errno`.
  let code: CInt
  /// Which call failed.
  let operation: String

  /// What happened, and what to do about it.
  var description: String {
    "The terminal could not be used: \(operation) failed: \(String(cString: strerror(code))) (errno \(code)). "
      + "Send the output to a file or a pipe to get plain lines."
  }
}
