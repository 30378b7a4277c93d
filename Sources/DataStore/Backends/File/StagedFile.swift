internal import Foundation

/// A synchronised file under a temporary name, which is about to take the place of another.
///
/// It is locked for as long as it is open, so that it isn't taken for one that a dead process left behind. It is closed
/// before it gets its final name, because the system reports the close of a file by the name that it has then: a store
/// that watches the folder would take its own file for one that was changed externally.
final class StagedFile {
  let name: String
  /// The bytes, which are those of the file.
  let bytes: Data
  private var file: Descriptor?

  init(name: String, bytes: Data, file: consuming Descriptor) {
    self.name = name
    self.bytes = bytes
    self.file = .some(file)
  }

  /// Closes the file, when the folder is locked: then no other process checks for files that were left behind.
  func close() {
    file = nil
  }

  /// What all names of staged files begin with.
  static let prefix = ".DataStore-"

  /// Names for the staged files of one backend, which no other backend uses.
  struct Names {
    /// What all names begin with.
    let prefix = StagedFile.prefix + UInt64.random(in: .min ... .max).hexadecimalDigits + "-"
    private var count = 0

    mutating func next() -> String {
      count += 1
      return prefix + String(count)
    }
  }

  /// Whether a file name is one of a staged file: `.DataStore-<hexadecimal digits>-<decimal digits>`.
  static func isName(_ name: String) -> Bool {
    guard name.hasPrefix(prefix) else { return false }
    let parts = name.dropFirst(prefix.count).split(separator: "-", omittingEmptySubsequences: false)
    return parts.count == 2 && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy { $0.isASCII && $0.isHexDigit } }
  }
}
