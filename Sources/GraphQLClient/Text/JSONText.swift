internal import Foundation

/// What a body must be before a decoder may read it.
enum JSONText {
  /// Checks that a body can be read in time that grows with its length.
  ///
  /// JSON between systems is in UTF-8 (RFC 8259, section 8.1); a decoder would read other encodings as well, unchecked.
  ///
  /// - Throws: `DecodingError.dataCorrupted`.
  static func check(_ body: Data) throws {
    let beginning = body.prefix(4)
    let isUTF8 =
      !beginning.contains(0) && !beginning.starts(with: [0xFE, 0xFF]) && !beginning.starts(with: [0xFF, 0xFE])
    guard isUTF8 else { throw corrupted("The text is not in UTF-8") }
    guard CombiningMarks.areReadable(in: body) else {
      throw corrupted("More than \(CombiningMarks.maximumRun) combining marks follow each other")
    }
  }

  private static func corrupted(_ reason: String) -> DecodingError {
    .dataCorrupted(.init(codingPath: [], debugDescription: reason))
  }
}
