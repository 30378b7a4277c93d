internal import Foundation

/// The preparation of a body before it is decoded.
enum JSONText {
  /// Returns a body with repaired text that can be decoded in time linear in its length, after checking that it isn't
  /// in UTF-16 or UTF-32.
  ///
  /// JSON that is exchanged between systems must be in UTF-8 (RFC 8259, section 8.1). A decoder would also accept
  /// UTF-16 and UTF-32, but ``CombiningMarks`` can check only UTF-8. The first four bytes of a body identify these
  /// encodings. ``JSONRepair`` and ``CombiningMarks`` say what is repaired.
  ///
  /// - Throws: `DecodingError.dataCorrupted` if the body fails a check.
  /// - Complexity: O(*n*), where *n* is the length of the body.
  static func readable(_ body: Data) throws -> Data {
    let beginning = body.prefix(4)
    let mayBeUTF8 =
      !beginning.contains(0) && !beginning.starts(with: [0xFE, 0xFF]) && !beginning.starts(with: [0xFF, 0xFE])
    guard mayBeUTF8 else { throw corrupted("The text is not encoded in UTF-8") }
    return CombiningMarks.separated(in: JSONRepair.repaired(body))
  }

  private static func corrupted(_ reason: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: [], debugDescription: reason))
  }
}
