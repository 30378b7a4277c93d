extension Unicode.Scalar {
  static let zeroWidthJoiner: Unicode.Scalar = "\u{200D}"
  static let textPresentation: Unicode.Scalar = "\u{FE0E}"
  static let emojiPresentation: Unicode.Scalar = "\u{FE0F}"

  /// How many columns the character takes of its own: 0, 1 or 2.
  ///
  /// What combines with the character before it, and what has no form at all, takes none.
  var displayWidth: Int {
    if value < 0x300 { return properties.generalCategory == .control || value == 0xAD ? 0 : 1 }
    switch properties.generalCategory {
    case .control, .format, .nonspacingMark, .enclosingMark, .lineSeparator, .paragraphSeparator: return 0
    default: break
    }
    // The vowels and final consonants of Hangul are drawn into the syllable that a first consonant opened.
    if (0x1160...0x11FF).contains(value) || (0xD7B0...0xD7FF).contains(value) { return 0 }
    return EastAsianWidth.isWide(self) ? 2 : 1
  }
}

extension Character {
  /// How many columns of a terminal the character takes: 0, 1 or 2.
  ///
  /// A character is a whole grapheme cluster, such as a family of four joined emoji, which takes 2.
  var displayWidth: Int {
    var width = 0
    for scalar in unicodeScalars {
      if scalar == .emojiPresentation, unicodeScalars.first!.properties.isEmoji { return 2 }
      width += scalar.displayWidth
    }
    return Swift.min(width, 2)
  }

  /// Whether terminals disagree about the character's width.
  ///
  /// They agree where there is one sign, with or without marks above and below. Of joined emoji, flags and presentation
  /// selectors, older ones draw every part on its own.
  var hasUncertainWidth: Bool {
    unicodeScalars.dropFirst().contains { scalar in
      scalar.displayWidth > 0 || scalar == .emojiPresentation || scalar == .textPresentation
        || scalar.properties.generalCategory == .format
    }
  }
}
