internal import Foundation

/// A check that a body must pass before it is decoded.
enum JSONText {
  /// Checks that a body isn't in UTF-16 or UTF-32, and can be decoded in time linear in its length.
  ///
  /// JSON that is exchanged between systems must be in UTF-8 (RFC 8259, section 8.1). A decoder would also accept
  /// UTF-16 and UTF-32, but ``CombiningMarks`` can check only UTF-8. The first four bytes of a body identify these
  /// encodings. Invalid UTF-8 is left to the decoder.
  ///
  /// - Throws: `DecodingError.dataCorrupted` if the body fails the check.
  static func check(_ body: Data) throws {
    let beginning = body.prefix(4)
    let mayBeUTF8 =
      !beginning.contains(0) && !beginning.starts(with: [0xFE, 0xFF]) && !beginning.starts(with: [0xFF, 0xFE])
    guard mayBeUTF8 else { throw corrupted("The text is not encoded in UTF-8") }
    guard CombiningMarks.areWithinLimit(in: body) else {
      throw corrupted("The text has more than \(CombiningMarks.maximumRunLength) consecutive combining marks")
    }
  }

  private static func corrupted(_ reason: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: [], debugDescription: reason))
  }
}
