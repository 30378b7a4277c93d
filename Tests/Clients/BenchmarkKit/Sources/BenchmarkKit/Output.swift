internal import Foundation

/// What a program prints.
public enum Output {
  /// Prints a line at once, also into a pipe.
  public static func show(_ text: String) {
    FileHandle.standardOutput.write(Data("\(text)\n".utf8))
  }

  /// Ends the program with a message on the standard error.
  public static func fail(_ program: String, _ error: any Error) -> Never {
    FileHandle.standardError.write(Data("\(program): \(error)\n".utf8))
    exit(1)
  }

  /// Returns a report as JSON for other programs.
  public static func json(_ report: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(report), as: UTF8.self)
  }
}
