import Multicast

@testable import MomentsCommand

/// Records the lines that are written to a console.
final class ConsoleRecorder: Sendable {
  private let written = Lock<(output: [String], errors: [String])>(([], []))

  var output: [String] { written.withLock { $0.output } }
  var errors: [String] { written.withLock { $0.errors } }

  var console: Console {
    Console(
      output: { text in
        self.written.withLock {
          $0.output += text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        }
      },
      errors: { text in self.written.withLock { $0.errors.append(text) } })
  }
}
