internal import Foundation

/// The output of a benchmark program.
public enum Output {
  /// Prints a line without buffering, even if standard output is a pipe.
  public static func show(_ text: String) {
    FileHandle.standardOutput.write(Data("\(text)\n".utf8))
  }

  /// Prints a message to standard error and exits with status 1.
  public static func fail(_ program: String, _ error: any Error) -> Never {
    FileHandle.standardError.write(Data("\(program): \(error)\n".utf8))
    exit(1)
  }

  /// Returns a report as JSON.
  public static func json(_ report: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(report), as: UTF8.self)
  }
}
