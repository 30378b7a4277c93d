internal import Foundation

/// The id of a part of a value: eight random hexadecimal digits, then the CRC-32C of the bytes of the part.
///
/// A part is immutable: if its elements change, it is replaced by a new part with a new id. A list of ids therefore
/// identifies exactly which bytes belong together. A corrupt or wrong part is detected by the checksum in its id.
enum PartID {
  static func make(for bytes: Data) -> String {
    UInt32.random(in: .min ... .max).hexadecimalDigits + CRC32C.checksum(of: bytes).hexadecimalDigits
  }

  /// Returns whether a text has the form of an id and is therefore safe to use in a name.
  static func isValid(_ id: String) -> Bool {
    id.utf8.count == 16 && id.utf8.allSatisfy("0123456789abcdef".utf8.contains)
  }

  /// Returns whether an id is valid and has the checksum of the bytes.
  static func matches(_ id: String, _ bytes: Data) -> Bool {
    isValid(id) && id.hasSuffix(CRC32C.checksum(of: bytes).hexadecimalDigits)
  }
}
