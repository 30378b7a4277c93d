internal import Foundation

/// Where the command writes: results to standard output, problems to standard error, a line at a time.
struct Console: Sendable {
  private let output: @Sendable (String) -> Void
  private let errors: @Sendable (String) -> Void

  init(output: @escaping @Sendable (String) -> Void, errors: @escaping @Sendable (String) -> Void) {
    self.output = output
    self.errors = errors
  }

  static let standard = Console(
    output: { FileHandle.standardOutput.write(Data("\($0)\n".utf8)) },
    errors: { FileHandle.standardError.write(Data("\($0)\n".utf8)) })

  func print(_ line: String) { output(line) }

  func error(_ line: String) { errors(line) }

  func finish(with text: String) -> CommandStatus {
    print(text)
    return .success
  }
}
