internal import Foundation
internal import TerminalUI

/// Where the command writes: results to standard output, problems to standard error, a line at a time.
struct Console: Sendable {
  private let output: @Sendable (String) -> Void
  private let errors: @Sendable (String) -> Void

  init(output: @escaping @Sendable (String) -> Void, errors: @escaping @Sendable (String) -> Void) {
    self.output = output
    self.errors = errors
  }

  /// The standard output and the standard error of the program, which ends where its output cannot be written.
  static let standard = Console(
    output: { line in
      do throws(TerminalError) {
        try TerminalDevice(input: STDIN_FILENO, output: STDOUT_FILENO).write("\(line)\n")
      } catch {
        end(becauseOf: error)
      }
    },
    errors: { line in
      do throws(TerminalError) {
        try TerminalDevice(input: STDIN_FILENO, output: STDERR_FILENO).write("\(line)\n")
      } catch {
        // A failure can't be reported.
      }
    })

  private static func end(becauseOf error: TerminalError) -> Never {
    // Here only if the program was started with SIGPIPE ignored. A process that stops reading needs no error.
    if error.code == EPIPE { exit(CommandStatus.brokenPipe.rawValue) }
    standard.error(
      "moments: The output could not be written: \(String(cString: strerror(error.code))) (errno \(error.code)). "
        + "Make room where it goes, or send it elsewhere.")
    exit(CommandStatus.inputOutput.rawValue)
  }

  func print(_ line: String) { output(line) }

  func error(_ line: String) { errors(line) }

  func finish(with text: String) -> CommandStatus {
    print(text)
    return .success
  }
}
