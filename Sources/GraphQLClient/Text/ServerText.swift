internal import Foundation

/// Text from a server, made fit for a log, a terminal or an error message.
///
/// A server chooses its words, so they may contain escape sequences that a terminal obeys, characters that reverse the
/// direction of a line, or megabytes. All text of a server that this module passes on has gone through here, except what
/// is data: that of a successful reply, and ``GraphQLError/extensions``.
enum ServerText {
  /// The most Unicode scalars a line has.
  static let maximumLength = APISessionError.excerptLength

  /// The most Unicode scalars a name has, such as a code or a field of a path.
  static let maximumNameLength = 128

  /// The most bytes of UTF-8 that a line can come from: no scalar takes more than four.
  static let maximumByteCount = 4 * maximumLength

  /// Returns the beginning of `text` on one line.
  ///
  /// Control and formatting characters and line separators become spaces. The limit counts scalars, since a single
  /// character can have any number of them. Text that is cut ends in “…”.
  ///
  /// - Complexity: O(`maximumLength`), however long the text is.
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

  /// Returns the beginning of a body on one line; bytes that are not UTF-8 appear as U+FFFD.
  static func line(of body: Data) -> String {
    // A few bytes more, so that a cut is noticed and falls behind the last scalar that is shown.
    line(String(decoding: body.prefix(maximumByteCount + 4), as: UTF8.self))
  }

  private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: false
    default: true
    }
  }
}
