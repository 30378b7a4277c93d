internal import Foundation

/// What a stored value is called and whose it is, apart from its type.
///
/// Errors and events carry it, and ``encoded()`` is the one name a ``StoreBackend`` sees. The encoding leaves `a`–`z`,
/// `0`–`9`, `_` and `-` as they are and writes every other byte as `%` and two lower-case hexadecimal digits, then
/// joins the name and the user's id with `.`. So two keys never share an encoded name, also where upper and lower case
/// count as equal, and no `/`, `..` or NUL survives.
///
/// ```swift
/// try StoreKeyName("timeline", userID: "Jake/0").encoded()  // "timeline.%4aake%2f0"
/// ```
public struct StoreKeyName: Hashable, Sendable {
  /// The longest encoded name, in bytes.
  public static let maximumEncodedLength = 200

  /// What is stored.
  public let name: String

  /// Whose it is; nil for a value that belongs to no user.
  public let userID: String?

  /// Creates the name of a value.
  ///
  /// - Parameters:
  ///   - name: What is stored.
  ///   - userID: Whose it is; nil for a value that belongs to no user.
  public init(_ name: String, userID: String? = nil) {
    self.name = name
    self.userID = userID
  }

  /// Reads an encoded name back; nil when `encoded` is not what ``encoded()`` makes of any name.
  public init?(encoded: String) {
    let parts = encoded.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard let name = Self.decode(parts[0]) else { return nil }
    if parts.count == 1 {
      self.init(name)
    } else {
      guard let userID = Self.decode(parts[1]) else { return nil }
      self.init(name, userID: userID)
    }
    // One name has one encoding, whatever else could be read as it.
    do { guard try self.encoded() == encoded else { return nil } } catch { return nil }
  }

  /// The name under which a ``StoreBackend`` keeps the value.
  ///
  /// - Throws: ``StoreError/invalidKey(_:)`` when the name or the user's id is empty, or when the result would be
  ///   longer than ``maximumEncodedLength``.
  public func encoded() throws(StoreError) -> String {
    if name.isEmpty { throw .invalidKey(.emptyName) }
    if userID?.isEmpty == true { throw .invalidKey(.emptyUserID) }
    var bytes: [UInt8] = []
    Self.encode(name, into: &bytes)
    if let userID {
      bytes.append(UInt8(ascii: "."))
      Self.encode(userID, into: &bytes)
    }
    if bytes.count > Self.maximumEncodedLength { throw .invalidKey(.tooLong(encodedLength: bytes.count)) }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension StoreKeyName: CustomStringConvertible {
  /// The name, and the user where there is one.
  public var description: String {
    userID.map { "\"\(name)\" of user \"\($0)\"" } ?? "\"\(name)\""
  }
}

extension StoreKeyName {
  private static func encode(_ part: String, into bytes: inout [UInt8]) {
    // Swift compares strings by canonical equivalence, so equal ones must have equal bytes.
    let isASCII = part.utf8.allSatisfy { $0 < 0x80 }
    for byte in (isASCII ? part : part.precomposedStringWithCanonicalMapping).utf8 {
      if isPlain(byte) {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), hexadecimalDigits[Int(byte >> 4)], hexadecimalDigits[Int(byte & 0xF)]]
      }
    }
  }

  private static func decode(_ part: Substring.UTF8View) -> String? {
    var bytes: [UInt8] = []
    var rest = part
    while let byte = rest.popFirst() {
      if isPlain(byte) {
        bytes.append(byte)
        continue
      }
      guard byte == UInt8(ascii: "%"),
        let high = rest.popFirst().flatMap(hexadecimalDigits.firstIndex),
        let low = rest.popFirst().flatMap(hexadecimalDigits.firstIndex)
      else { return nil }
      bytes.append(UInt8(high << 4 | low))
    }
    return String(validating: bytes, as: UTF8.self)
  }

  private static let hexadecimalDigits = Array("0123456789abcdef".utf8)

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"),
      UInt8(ascii: "-"):
      true
    default:
      false
    }
  }
}
