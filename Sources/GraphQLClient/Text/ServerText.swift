internal import Foundation

/// Sanitizes text from a server for a log, a terminal or an error message.
///
/// The server controls this text. It may contain escape sequences that a terminal executes or characters that reverse
/// the direction of a line, and it may be megabytes long. An ``APISession`` sanitizes such text here before it returns
/// or throws it. Only the `data` of a reply, and the `extensions` of the reply and of its errors, stay unchanged,
/// because they are data.
enum ServerText {
  /// The maximum length of a line, in Unicode scalars.
  static let maximumLength = APISessionError.excerptLength

  /// The maximum length of a name, such as a code or a field of a path, in Unicode scalars.
  static let maximumNameLength = 128

  /// The maximum length of a line in UTF-8, in bytes: a scalar takes at most four.
  static let maximumByteCount = 4 * maximumLength

  /// Returns the beginning of `text` on one line.
  ///
  /// Control and formatting characters and line separators become spaces. The limit counts scalars, because a single
  /// character can have any number of them. Truncated text ends in “…”.
  ///
  /// - Complexity: O(`maximumLength`), regardless of the length of the text.
  static func line(_ text: String, maximumLength: Int = maximumLength) -> String {
    var scalars = String.UnicodeScalarView()
    var count = 0
    for scalar in text.unicodeScalars {
      if count == maximumLength {
        scalars.removeLast()
        scalars.append("…")
        break
      }
      scalars.append(isHarmless(scalar) ? scalar : " ")
      count += 1
    }
    return String(scalars)
  }

  /// Returns the beginning of a name on one line.
  static func name(_ text: String) -> String {
    line(text, maximumLength: maximumNameLength)
  }

  /// Returns the beginning of a body on one line, with U+FFFD in place of bytes that aren't UTF-8.
  static func line(of body: Data) -> String {
    // If every scalar takes four bytes, `maximumByteCount` bytes hold exactly `maximumLength` scalars. Four more bytes
    // hold another scalar, so that a longer body ends in “…”.
    line(String(decoding: body.prefix(maximumByteCount + 4), as: UTF8.self))
  }

  private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: false
    default: true
    }
  }
}
