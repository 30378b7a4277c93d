extension Unicode.Scalar {
  static let zeroWidthJoiner: Unicode.Scalar = "\u{200D}"
  static let textPresentationSelector: Unicode.Scalar = "\u{FE0E}"
  static let emojiPresentationSelector: Unicode.Scalar = "\u{FE0F}"

  /// The number of columns that the scalar takes by itself: 0, 1 or 2.
  ///
  /// A mark that is drawn over the preceding scalar takes 0 columns, and so does a scalar without a visible form.
  var displayWidth: Int {
    // Before the combining marks, which start at U+0300, only controls and the soft hyphen, U+00AD, take no column.
    if value < 0x300 { return properties.generalCategory == .control || value == 0xAD ? 0 : 1 }
    switch properties.generalCategory {
    case .control, .format, .nonspacingMark, .enclosingMark, .lineSeparator, .paragraphSeparator: return 0
    default: break
    }
    // Vowels and final consonants of Hangul are drawn into the syllable that an initial consonant starts.
    if (0x1160...0x11FF).contains(value) || (0xD7B0...0xD7FF).contains(value) { return 0 }
    return EastAsianWidth.isWide(self) ? 2 : 1
  }
}

extension Character {
  /// The number of terminal columns that the character takes: 0, 1 or 2.
  ///
  /// A character is a whole grapheme cluster. For example, a family emoji, joined from four emoji, takes 2 columns.
  var displayWidth: Int {
    var width = 0
    for scalar in unicodeScalars {
      if scalar == .emojiPresentationSelector, unicodeScalars.first!.properties.isEmoji { return 2 }
      width += scalar.displayWidth
    }
    return Swift.min(width, 2)
  }

  /// Whether terminals disagree about the character's width.
  ///
  /// Terminals agree about a single visible scalar, with or without nonspacing marks. They disagree about joined emoji,
  /// flags and presentation selectors, because older terminals draw each part separately.
  var hasUncertainWidth: Bool {
    unicodeScalars.dropFirst().contains { scalar in
      scalar.displayWidth > 0 || scalar == .emojiPresentationSelector || scalar == .textPresentationSelector
        || scalar.properties.generalCategory == .format
    }
  }
}
