internal import Foundation

/// The id of one part of a value: eight random hexadecimal digits, then the CRC-32C of the part's bytes.
///
/// A part never changes: a changed part is a new one with an id of its own. So a list of ids says exactly which bytes
/// belong together, and a part that is missing, corrupt or another one is recognised.
enum PartID {
  static func make(for bytes: Data) -> String {
    UInt32.random(in: .min ... .max).hexadecimalDigits + CRC32C.checksum(of: bytes).hexadecimalDigits
  }

  static func matches(_ id: String, _ bytes: Data) -> Bool {
    id.utf8.count == 16 && id.hasSuffix(CRC32C.checksum(of: bytes).hexadecimalDigits)
  }
}
