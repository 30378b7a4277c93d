internal import Foundation

/// An identifier of the commit that wrote a stored value.
///
/// The tag is stored with the value, so it is the same in every process and after a relaunch. Two commits have
/// different tags, even if they write equal bytes. All values that one commit saves have the same tag.
///
/// Use it as a precondition with ``StoreBatch/require(_:of:)``.
public struct StoreTag: Hashable, Sendable {
  private let high: UInt64
  private let low: UInt64

  /// Creates a unique tag.
  public init() {
    high = .random(in: .min ... .max)
    low = .random(in: .min ... .max)
  }

  /// Creates the tag of stored bytes whose own tag can't be read.
  ///
  /// Equal bytes have the same tag, so that a commit can require that nothing else is stored.
  init(of bytes: Data) {
    // Two FNV-1a hashes with different start values. The start values are constants, so the tag is the same in every
    // process.
    var (high, low): (UInt64, UInt64) = (0xCBF2_9CE4_8422_2325, 0x9E37_79B9_7F4A_7C15)
    for byte in bytes {
      high = (high ^ UInt64(byte)) &* 0x100_0000_01B3
      low = (low ^ UInt64(byte)) &* 0x100_0000_01B3
    }
    (self.high, self.low) = (high, low)
  }

  /// Creates a tag from its text, or returns `nil` if the text isn't 32 hexadecimal digits.
  init?(text: String) {
    // The digits are checked because `UInt64` also accepts a sign.
    guard text.utf8.count == 32, text.allSatisfy(\.isHexDigit), let high = UInt64(text.prefix(16), radix: 16),
      let low = UInt64(text.suffix(16), radix: 16)
    else { return nil }
    (self.high, self.low) = (high, low)
  }

  /// The tag as 32 lower-case hexadecimal digits.
  var text: String { high.hexadecimalDigits + low.hexadecimalDigits }
}

extension StoreTag: CustomStringConvertible {
  /// The tag as text, for a log.
  public var description: String { text }
}

extension StoreTag: Codable {
  /// Decodes a tag from a string.
  ///
  /// - Throws: A `DecodingError` if there is no string, or if it isn't the text of a tag.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let tag = StoreTag(text: text) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "\"\(text)\" isn't a tag.")
    }
    self = tag
  }

  /// Encodes the tag as a string.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

extension FixedWidthInteger where Self: UnsignedInteger {
  /// The value in hexadecimal, in lower case and with leading zeros.
  var hexadecimalDigits: String {
    let digits = String(self, radix: 16)
    return String(repeating: "0", count: Self.bitWidth / 4 - digits.count) + digits
  }
}
