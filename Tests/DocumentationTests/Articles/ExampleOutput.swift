import Multicast

/// Stands in for the standard library's `print` in an example, so that a test can check the output.
typealias Print = @Sendable (Any) -> Void

/// Runs an example and returns the lines that it printed.
func output(of example: (@escaping Print) async throws -> Void) async rethrows -> [String] {
  let output = Output()
  try await example(output.print)
  return output.lines
}

private final class Output: Sendable {
  private let storage = Lock<[String]>([])
  var lines: [String] { storage.withLock { $0 } }

  @Sendable func print(_ item: Any) {
    let line = "\(item)"
    storage.withLock { $0.append(line) }
  }
}
