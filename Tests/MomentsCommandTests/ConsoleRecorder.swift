import Multicast

@testable import MomentsCommand

/// Records what is written to a console.
final class ConsoleRecorder: Sendable {
  private let written = Lock<(output: [String], errors: [String])>(([], []))

  /// The written output, divided at line breaks.
  ///
  /// A text that ends with a line break adds an empty last line.
  var output: [String] { written.withLock { $0.output } }
  /// The error messages, one for each write.
  var errors: [String] { written.withLock { $0.errors } }

  /// A console whose texts are recorded.
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
