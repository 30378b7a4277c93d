/// Functions that measure, truncate, pad and wrap text in the columns of a terminal.
///
/// The results are safe to write to a terminal, because no character in them is interpreted as a command.
package enum TerminalText {
  package enum Alignment {
    case leading
    case trailing
  }

  package static let ellipsis: Character = "…"

  /// Returns the number of columns that the ``printable(_:)`` form of a text takes.
  package static func width(of text: String) -> Int {
    printable(text).reduce(0) { $0 + $1.displayWidth }
  }

  /// Returns the text as a single line that is safe to show.
  ///
  /// Line breaks and tabs become spaces, and other control characters become the replacement character. Characters that
  /// change the direction of the text are removed, and so are characters that take no column.
  package static func printable(_ text: String) -> String {
    if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text }
    var scalars = String.UnicodeScalarView()
    var previous: Unicode.Scalar?
    for scalar in text.unicodeScalars {
      defer { previous = scalar }
      switch scalar {
      case "\n" where previous == "\r": break
      case "\t", "\n", "\u{B}", "\u{C}", "\r", "\u{85}", "\u{2028}", "\u{2029}": scalars.append(" ")
      // These format characters can be a part of a visible character, as in a family emoji or the flag of Scotland.
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

  /// Returns the text if it fits, or as much of its start as fits before an ellipsis.
  package static func truncated(_ text: String, to columns: Int) -> String {
    let text = printable(text)
    guard columns > 0 else { return "" }
    var width = 0
    // The place to cut if the text turns out not to fit, with one column left for the ellipsis.
    var cut = text.startIndex
    for index in text.indices {
      width += text[index].displayWidth
      if width > columns { return String(text[..<cut]) + String(ellipsis) }
      if width <= columns - 1 { cut = text.index(after: index) }
    }
    return text
  }

  /// Returns the text if it fits, or as much of its end as fits after an ellipsis.
  package static func tail(of text: String, columns: Int) -> String {
    let text = printable(text)
    guard columns > 0 else { return "" }
    if width(of: text) <= columns { return text }
    // The ellipsis takes one column.
    var width = 1
    let tail = text.reversed().prefix { character in
      width += character.displayWidth
      return width <= columns
    }
    return String(ellipsis) + String(tail.reversed())
  }

  /// Returns the text in exactly `columns` columns, truncated with an ellipsis or padded with spaces.
  package static func padded(_ text: String, to columns: Int, alignment: Alignment = .leading) -> String {
    let text = truncated(text, to: columns)
    let padding = String(repeating: " ", count: max(0, columns - width(of: text)))
    switch alignment {
    case .leading: return text + padding
    case .trailing: return padding + text
    }
  }

  /// Returns the lines of a paragraph, none wider than `columns`.
  ///
  /// Returns no lines for a text without words, or if `columns` is less than 2.
  ///
  /// A line breaks at a space, or next to a wide character unless closing punctuation follows the break. It breaks
  /// within a word only if the word is wider than a line. Spaces at a break are removed, and several spaces become one.
  package static func wrapped(_ text: String, to columns: Int) -> [String] {
    // A single column has no room for a wide character.
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
    /// Text that stays on one line if it fits.
    case word(String)
  }

  /// Closing punctuation, and the Japanese long-vowel mark `ー`, which doesn't start a line either.
  private static let closingPunctuation: Set<Character> = [
    ",", ".", "!", "?", ":", ";", ")", "\u{FF0C}", "\u{FF0E}", "\u{FF01}", "\u{FF1F}", "\u{FF1A}", "\u{FF1B}",
    "\u{FF09}", "、", "。", "」", "』", "】", "》", "〉", "ー", "…",
  ]

  private static func parts(of text: String) -> [Part] {
    var parts: [Part] = []
    var word = ""
    var isPreviousWide = false
    func finishWord() {
      if !word.isEmpty { parts.append(.word(word)) }
      word = ""
    }
    for character in text {
      if character == " " {
        finishWord()
        parts.append(.space)
        isPreviousWide = false
        continue
      }
      let isWide = character.displayWidth == 2
      if (isWide || isPreviousWide) && !closingPunctuation.contains(character) { finishWord() }
      word.append(character)
      isPreviousWide = isWide
    }
    finishWord()
    return parts
  }
}
