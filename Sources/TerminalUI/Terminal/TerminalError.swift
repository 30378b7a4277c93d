internal import Foundation

/// A call to the terminal that failed.
package struct TerminalError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The system's error number, `errno`.
  package let code: CInt
  /// Which call failed.
  package let operation: String

  package init(code: CInt, operation: String) {
    (self.code, self.operation) = (code, operation)
  }

  /// What happened, and what to do about it.
  package var description: String {
    "The terminal could not be used: \(operation) failed: \(String(cString: strerror(code))) (errno \(code)). "
      + "Send the output to a file or a pipe to get plain lines."
  }
}
