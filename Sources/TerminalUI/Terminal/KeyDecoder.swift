/// Decodes keys from the bytes that a terminal sends.
///
/// The bytes of a key may be split across several reads. The decoder keeps an incomplete sequence until the rest
/// arrives. A sequence that stands for no ``Key`` is discarded as a whole, so that none of its letters is mistaken for
/// a key. Bytes that are not UTF-8 are discarded as well.
///
/// Pasted text is distinguished from typed text, and becomes a single line. Each read delivers its part of a paste as
/// one ``Key/pasted(_:)``. The only other key within a paste is Ctrl-C, which also ends the paste, in case its closing
/// sequence never arrives.
struct KeyDecoder: Sendable {
  private enum State {
    /// Outside of any sequence.
    case ground
    /// `ESC`: the Escape key, or the start of a sequence.
    case escape
    /// `ESC [` and the parameters that have arrived.
    case controlSequence(parameters: [UInt8])
    /// `ESC [ [`, with which the Linux console starts its first function keys; one byte follows.
    case consoleFunctionKey
    /// `ESC O`, with which terminals in application mode start the arrow keys.
    case singleShift
    /// `ESC ]` and similar: a text that ends with BEL or `ESC \`.
    case controlString(length: Int)
    /// `ESC` within a control string; if `\` follows, the string ends.
    case controlStringEscape
    /// The first bytes of a character that takes `byteCount` bytes in UTF-8.
    case scalar([UInt8], byteCount: Int)
  }

  /// The maximum length of a sequence, in bytes.
  ///
  /// If a sequence is longer, its remaining bytes are decoded as keys.
  private static let maximumLength = 256

  private var state = State.ground
  private var isPasting = false
  /// The pasted text that has not been delivered yet; empty between reads.
  private var pasted = ""
  /// Whether the paste so far ends with line breaks or tabs, which become one space if more text follows.
  private var isSpacePending = false

  /// Whether the last bytes are ambiguous: either complete, such as Escape or a letter with the Alt key, or the start
  /// of a longer sequence.
  ///
  /// Within a paste, this is `false`, because such bytes can only start the sequence that ends the paste. The decoder
  /// waits for the rest of that sequence.
  var isSequencePending: Bool {
    switch state {
    case .ground, .scalar: false
    case .escape, .controlSequence, .consoleFunctionKey, .singleShift, .controlString, .controlStringEscape: !isPasting
    }
  }

  /// Returns the keys that these bytes complete.
  mutating func decode(_ bytes: some Sequence<UInt8>) -> [Key] {
    var keys: [Key] = []
    for byte in bytes {
      let start = keys.count
      let wasPasting = isPasting
      decode(byte, into: &keys)
      if wasPasting { moveToPastedText(from: start, in: &keys) }
    }
    deliverPastedText(to: &keys)
    return keys
  }

  /// Abandons an incomplete sequence, because its rest hasn't arrived in time or never will.
  ///
  /// The abandoned bytes don't affect the decoding of later bytes.
  ///
  /// - Returns: The Escape key if the sequence is a lone `ESC` outside of a paste, and no key otherwise.
  mutating func finish() -> [Key] {
    defer { state = .ground }
    if case .escape = state, !isPasting { return [.escape] }
    return []
  }

  /// Moves the keys that were decoded within a paste, those from `start` on, to the pasted text.
  ///
  /// When the paste ends, the text is appended to the keys as a single key. Ctrl-C ends the paste and remains a key.
  private mutating func moveToPastedText(from start: Int, in keys: inout [Key]) {
    let decoded = keys[start...]
    keys.removeSubrange(start...)
    for key in decoded {
      switch key {
      case .character(let character):
        if isSpacePending { pasted.append(" ") }
        isSpacePending = false
        pasted.append(character)
      case .enter, .tab: isSpacePending = true
      case .control("c"):
        isPasting = false
        deliverPastedText(to: &keys)
        keys.append(key)
      default: break
      }
    }
    if !isPasting { deliverPastedText(to: &keys) }
  }

  private mutating func deliverPastedText(to keys: inout [Key]) {
    if !pasted.isEmpty { keys.append(.pasted(pasted)) }
    pasted = ""
  }

  private mutating func decode(_ byte: UInt8, into keys: inout [Key]) {
    switch state {
    case .ground: decodeGround(byte, into: &keys)
    case .escape: decodeEscape(byte, into: &keys)
    case .controlSequence(let parameters):
      switch byte {
      case 0x20...0x3F where parameters.count < Self.maximumLength:
        state = .controlSequence(parameters: parameters + [byte])
      case UInt8(ascii: "[") where parameters.isEmpty: state = .consoleFunctionKey
      case 0x40...0x7E:
        state = .ground
        switch (byte, parameters) {
        case (UInt8(ascii: "~"), Array("200".utf8)): (isPasting, isSpacePending) = (true, false)
        case (UInt8(ascii: "~"), Array("201".utf8)): isPasting = false
        default: if let key = Self.key(finalByte: byte, parameters: parameters) { keys.append(key) }
        }
      default: decodeGround(byte, into: &keys)
      }
    case .consoleFunctionKey:
      state = .ground
      if byte < 0x20 { decodeGround(byte, into: &keys) }
    case .singleShift:
      state = .ground
      if let key = Self.key(finalByte: byte, parameters: []) {
        keys.append(key)
      } else if byte < 0x20 {
        decodeGround(byte, into: &keys)
      }
    case .controlString(let length):
      switch byte {
      case 0x07: state = .ground
      case 0x1B: state = .controlStringEscape
      case 0x20... where length < Self.maximumLength: state = .controlString(length: length + 1)
      default: decodeGround(byte, into: &keys)
      }
    case .controlStringEscape:
      if byte == UInt8(ascii: "\\") { state = .ground } else { decodeEscape(byte, into: &keys) }
    case .scalar(let bytes, let byteCount):
      guard byte & 0xC0 == 0x80 else { return decodeGround(byte, into: &keys) }
      if bytes.count + 1 < byteCount {
        state = .scalar(bytes + [byte], byteCount: byteCount)
      } else {
        state = .ground
        // `nil` for bytes that only look like UTF-8, such as half of a surrogate pair.
        if let text = String(validating: bytes + [byte], as: UTF8.self) { keys.append(.character(Character(text))) }
      }
    }
  }

  private mutating func decodeGround(_ byte: UInt8, into keys: inout [Key]) {
    state = .ground
    switch byte {
    case 0x1B: state = .escape
    case 0x0D, 0x0A: keys.append(.enter)
    case 0x09: keys.append(.tab)
    case 0x08, 0x7F: keys.append(.backspace)
    case 0x01...0x1A: keys.append(.control(Character(Unicode.Scalar(byte + 0x60))))
    case 0x20..<0x7F: keys.append(.character(Character(Unicode.Scalar(byte))))
    case 0xC2..<0xE0: state = .scalar([byte], byteCount: 2)
    case 0xE0..<0xF0: state = .scalar([byte], byteCount: 3)
    case 0xF0..<0xF5: state = .scalar([byte], byteCount: 4)
    default: break
    }
  }

  private mutating func decodeEscape(_ byte: UInt8, into keys: inout [Key]) {
    switch byte {
    case UInt8(ascii: "["): state = .controlSequence(parameters: [])
    case UInt8(ascii: "O"): state = .singleShift
    case UInt8(ascii: "]"), UInt8(ascii: "P"), UInt8(ascii: "_"), UInt8(ascii: "^"), UInt8(ascii: "X"):
      state = .controlString(length: 0)
    default:
      // The Escape key, followed by another key.
      keys.append(.escape)
      decodeGround(byte, into: &keys)
    }
  }

  private static func key(finalByte: UInt8, parameters: [UInt8]) -> Key? {
    switch finalByte {
    case UInt8(ascii: "A"): return .up
    case UInt8(ascii: "B"): return .down
    case UInt8(ascii: "C"): return .right
    case UInt8(ascii: "D"): return .left
    case UInt8(ascii: "H"): return .home
    case UInt8(ascii: "F"): return .end
    case UInt8(ascii: "Z"): return .backTab
    // The keypad's Enter key sends `ESC O M`. With parameters, `M` ends the report of a mouse event.
    case UInt8(ascii: "M"): return parameters.isEmpty ? .enter : nil
    case UInt8(ascii: "~"):
      // Modifiers follow after a semicolon.
      return switch String(decoding: parameters.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self) {
      case "1", "7": .home
      case "4", "8": .end
      case "5": .pageUp
      case "6": .pageDown
      default: nil
      }
    default: return nil
    }
  }
}
