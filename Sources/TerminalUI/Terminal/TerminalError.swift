internal import Foundation

/// A failed system call on a terminal.
package struct TerminalError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The system's error number, `errno`.
  package let code: CInt
  /// The name of the failed call.
  package let operation: String

  package init(code: CInt, operation: String) {
    (self.code, self.operation) = (code, operation)
  }

  /// A message that says what happened and what to do about it.
  package var description: String {
    "The terminal could not be used: \(operation) failed: \(String(cString: strerror(code))) (errno \(code)). "
      + "Redirect the output to a file or a pipe to get plain lines."
  }
}
