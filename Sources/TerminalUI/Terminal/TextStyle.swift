/// The number of colors of a terminal.
package enum ColorDepth: Int, Sendable, Comparable {
  case none
  /// The 16 colors of the user's theme.
  case basic
  /// A palette of 256 colors.
  case indexed
  /// Colors of 24 bits.
  case direct

  package static func < (left: ColorDepth, right: ColorDepth) -> Bool { left.rawValue < right.rawValue }
}

/// A color, specified for each color depth of a terminal.
package struct TerminalColor: Hashable, Sendable {
  /// The number in the user's theme: 0 to 7, or 8 to 15 for the bright colors.
  package var basic: UInt8
  /// The number in the palette of 256 colors.
  package var indexed: UInt8
  /// Red, green and blue, as in `0xRRGGBB`.
  package var direct: UInt32

  /// Returns the parameters of the control sequence that selects this text color; `nil` if the terminal has no colors.
  package func parameters(depth: ColorDepth) -> String? {
    switch depth {
    case .none: nil
    // 30 to 37, and 90 to 97 for the bright colors.
    case .basic: String(basic < 8 ? 30 + basic : 82 + basic)
    case .indexed: "38;5;\(indexed)"
    case .direct: "38;2;\(direct >> 16 & 0xFF);\(direct >> 8 & 0xFF);\(direct & 0xFF)"
    }
  }
}

/// The appearance of a cell of a terminal.
package struct TextStyle: Hashable, Sendable {
  package struct Attributes: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
      self.rawValue = rawValue
    }

    package static let bold = Attributes(rawValue: 1)
    package static let dim = Attributes(rawValue: 2)
    package static let inverse = Attributes(rawValue: 4)
  }

  package static let plain = TextStyle()

  package var color: TerminalColor?
  package var attributes: Attributes

  package init(color: TerminalColor? = nil, attributes: Attributes = []) {
    (self.color, self.attributes) = (color, attributes)
  }

  /// Returns the style without its color if the terminal has no colors, and unchanged otherwise.
  package func reduced(to depth: ColorDepth) -> TextStyle {
    depth == .none ? TextStyle(attributes: attributes) : self
  }

  /// Returns the control sequence that changes a terminal from another style to this one; empty if none is needed.
  package func sequence(from other: TextStyle, depth: ColorDepth) -> String {
    let new = reduced(to: depth)
    let old = other.reduced(to: depth)
    if new == old { return "" }
    if new == .plain { return "\u{1B}[m" }
    // If the old style has an attribute that the new one lacks, or has a color and the new one has none, the sequence
    // starts with a reset, which is the parameter 0.
    let keepsOldStyle = old.attributes.isSubset(of: new.attributes) && (old.color == nil || new.color != nil)
    let keptStyle = keepsOldStyle ? old : .plain
    let added = new.attributes.subtracting(keptStyle.attributes)
    var parameters = keepsOldStyle ? [] : ["0"]
    if added.contains(.bold) { parameters.append("1") }
    if added.contains(.dim) { parameters.append("2") }
    if added.contains(.inverse) { parameters.append("7") }
    if new.color != keptStyle.color, let color = new.color?.parameters(depth: depth) { parameters.append(color) }
    return "\u{1B}[\(parameters.joined(separator: ";"))m"
  }
}
