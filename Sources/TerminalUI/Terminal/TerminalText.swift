/// Text in the columns of a terminal: its width, cut to a width, filled up to it, and wrapped at it.
///
/// What comes out can be written to a terminal: no character of it is taken for a command.
package enum TerminalText {
  package enum Alignment {
    case leading
    case trailing
  }

  package static let ellipsis: Character = "…"

  /// How many columns a text takes, once made ``printable(_:)``.
  package static func width(of text: String) -> Int {
    printable(text).reduce(0) { $0 + $1.displayWidth }
  }

  /// The text as it may be shown, in one line.
  ///
  /// Breaks and tabs become spaces, other control characters the replacement character. What would turn the direction
  /// of the rest of the line goes, and so does what takes no column.
  package static func printable(_ text: String) -> String {
    if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text }
    var scalars = String.UnicodeScalarView()
    var previous: Unicode.Scalar?
    for scalar in text.unicodeScalars {
      defer { previous = scalar }
      switch scalar {
      case "\n" where previous == "\r": break
      case "\t", "\n", "\u{B}", "\u{C}", "\r", "\u{85}", "\u{2028}", "\u{2029}": scalars.append(" ")
      case .zeroWidthJoiner, "\u{200C}", "\u{E0020}"..."\u{E007F}": scalars.append(scalar)
      default:
        switch scalar.properties.generalCategory {
        case .control: scalars.append("\u{FFFD}")
        case .format: break
        default: scalars.append(scalar)
        }
      }
    }
    return String(scalars).filter { $0.displayWidth > 0 }
  }

  /// The text, or as much of it as fits with an ellipsis.
  package static func truncated(_ text: String, to columns: Int) -> String {
    let text = printable(text)
    guard columns > 0 else { return "" }
    var width = 0
    // Where the text is cut should it turn out not to fit: a column is kept for the ellipsis.
    var cut = text.startIndex
    for index in text.indices {
      width += text[index].displayWidth
      if width > columns { return String(text[..<cut]) + String(ellipsis) }
      if width <= columns - 1 { cut = text.index(after: index) }
    }
    return text
  }

  /// The text, or as much of its end as fits behind an ellipsis.
  package static func tail(of text: String, columns: Int) -> String {
    let text = printable(text)
    guard columns > 0 else { return "" }
    if width(of: text) <= columns { return text }
    var width = 1
    let tail = text.reversed().prefix { character in
      width += character.displayWidth
      return width <= columns
    }
    return String(ellipsis) + String(tail.reversed())
  }

  /// The text in exactly so many columns: cut with an ellipsis, or filled up with spaces.
  package static func padded(_ text: String, to columns: Int, alignment: Alignment = .leading) -> String {
    let text = truncated(text, to: columns)
    let padding = String(repeating: " ", count: max(0, columns - width(of: text)))
    switch alignment {
    case .leading: return text + padding
    case .trailing: return padding + text
    }
  }

  /// The lines of a paragraph, none wider than `columns`; none for a text without words.
  ///
  /// Lines break between words, around wide characters but not before their closing punctuation, and within a word only
  /// where it is wider than a line. Spaces at a break go, and several spaces become one.
  package static func wrapped(_ text: String, to columns: Int) -> [String] {
    // Narrower than the widest character nothing can be kept in its line.
    guard columns >= 2 else { return [] }
    var lines: [String] = []
    var line = ""
    var lineWidth = 0
    var isSpacePending = false
    for part in parts(of: printable(text)) {
      guard case .word(let word) = part else {
        isSpacePending = !line.isEmpty
        continue
      }
      let wordWidth = word.reduce(0) { $0 + $1.displayWidth }
      if lineWidth + (isSpacePending ? 1 : 0) + wordWidth <= columns {
        line += isSpacePending ? " " + word : word
        lineWidth += (isSpacePending ? 1 : 0) + wordWidth
      } else {
        if !line.isEmpty { lines.append(line) }
        (line, lineWidth) = ("", 0)
        for character in word {
          if lineWidth + character.displayWidth > columns {
            lines.append(line)
            (line, lineWidth) = ("", 0)
          }
          line.append(character)
          lineWidth += character.displayWidth
        }
      }
      isSpacePending = false
    }
    if !line.isEmpty { lines.append(line) }
    return lines
  }

  private enum Part {
    case space
    /// What stays together in a line.
    case word(String)
  }

  private static let closingPunctuation: Set<Character> = [
    ",", ".", "!", "?", ":", ";", ")", "\u{FF0C}", "\u{FF0E}", "\u{FF01}", "\u{FF1F}", "\u{FF1A}", "\u{FF1B}",
    "\u{FF09}", "、", "。", "」", "』", "】", "》", "〉", "ー", "…",
  ]

  private static func parts(of text: String) -> [Part] {
    var parts: [Part] = []
    var word = ""
    var endsInWide = false
    func finishWord() {
      if !word.isEmpty { parts.append(.word(word)) }
      word = ""
    }
    for character in text {
      if character == " " {
        finishWord()
        parts.append(.space)
        endsInWide = false
        continue
      }
      let isWide = character.displayWidth == 2
      if (isWide || endsInWide) && !closingPunctuation.contains(character) { finishWord() }
      word.append(character)
      endsInWide = isWide
    }
    finishWord()
    return parts
  }
}
