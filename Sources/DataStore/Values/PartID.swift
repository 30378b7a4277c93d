internal import Foundation

/// The id of one part of a value: eight random hexadecimal digits, then the CRC-32C of the part's bytes.
///
/// A part never changes: a changed part is a new one with an id of its own. So a list of ids says exactly which bytes
/// belong together, and a part that is missing, corrupt or another one is recognised.
enum PartID {
  static func make(for bytes: Data) -> String {
    UInt32.random(in: .min ... .max).hexadecimalDigits + CRC32C.checksum(of: bytes).hexadecimalDigits
  }

  /// Whether a text has the form of an id, and so is safe as a part of a name.
  static func isValid(_ id: String) -> Bool {
    id.utf8.count == 16 && id.utf8.allSatisfy("0123456789abcdef".utf8.contains)
  }

  static func matches(_ id: String, _ bytes: Data) -> Bool {
    isValid(id) && id.hasSuffix(CRC32C.checksum(of: bytes).hexadecimalDigits)
  }
}
