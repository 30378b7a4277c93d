internal import Foundation
internal import TerminalUI

/// The output of the command, line by line: results go to standard output, and problems to standard error.
struct Console: Sendable {
  private let output: @Sendable (String) -> Void
  private let errors: @Sendable (String) -> Void

  init(output: @escaping @Sendable (String) -> Void, errors: @escaping @Sendable (String) -> Void) {
    self.output = output
    self.errors = errors
  }

  /// The standard output and the standard error of the process.
  ///
  /// The process exits if its standard output can't be written.
  static let standard = Console(
    output: { line in
      do throws(TerminalError) {
        try TerminalDevice(input: STDIN_FILENO, output: STDOUT_FILENO).write("\(line)\n")
      } catch {
        exitProcess(becauseOf: error)
      }
    },
    errors: { line in
      do throws(TerminalError) {
        try TerminalDevice(input: STDIN_FILENO, output: STDERR_FILENO).write("\(line)\n")
      } catch {
        // There is no other place to report a failure.
      }
    })

  private static func exitProcess(becauseOf error: TerminalError) -> Never {
    // The reader of the output has closed it, which isn't a failure of the command. The error is EPIPE only if the
    // program was started with SIGPIPE ignored; otherwise, the signal ends the program.
    if error.code == EPIPE { exit(CommandStatus.brokenPipe.rawValue) }
    standard.error(
      "moments: The output could not be written: \(String(cString: strerror(error.code))) (errno \(error.code)). "
        + "Free space at its destination, or redirect it.")
    exit(CommandStatus.inputOutput.rawValue)
  }

  func print(_ line: String) { output(line) }

  func error(_ line: String) { errors(line) }

  /// Prints a text, and returns the status of a command that succeeds.
  func succeed(printing text: String) -> CommandStatus {
    print(text)
    return .success
  }
}
