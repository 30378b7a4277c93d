internal import Foundation

/// The beginning of a reply's body as text for an error message.
enum BodyExcerpt {
  /// The most bytes an excerpt can need: no Unicode scalar takes more than four in UTF-8.
  static let maximumByteCount = 4 * APISessionError.excerptLength

  /// The first ``APISessionError/excerptLength`` characters of `body` on one line.
  ///
  /// Control characters, line breaks among them, become spaces: the text comes from outside and may end in a terminal
  /// or a log, where an escape sequence would act. Bytes that are not UTF-8 are shown as U+FFFD. A longer body ends
  /// in “…”.
  static func text(of body: Data) -> String {
    let decoded = String(decoding: body.prefix(maximumByteCount), as: UTF8.self)
    var scalars = String.UnicodeScalarView()
    for scalar in decoded.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator: scalars.append(" ")
      default: scalars.append(scalar)
      }
    }
    let line = String(scalars)
    guard line.count > APISessionError.excerptLength || body.count > maximumByteCount else { return line }
    return line.prefix(APISessionError.excerptLength - 1) + "…"
  }
}
