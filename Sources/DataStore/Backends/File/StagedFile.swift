internal import Foundation

/// A synchronized file under a temporary name, until a commit renames it to its final one.
///
/// It is locked while it is open, if the volume supports locks, so that no other process mistakes it for an abandoned
/// file and removes it. It is closed before it gets its final name, because the system reports a close under the name
/// that the file has when it is closed. Under the final name, a store that watches the folder would mistake the close
/// for an external change.
final class StagedFile {
  let name: String
  /// The contents of the file.
  let bytes: Data
  private var file: Descriptor?

  init(name: String, bytes: Data, file: consuming Descriptor) {
    self.name = name
    self.bytes = bytes
    self.file = .some(file)
  }

  /// Closes the file, which unlocks it.
  ///
  /// The folder must be locked, because then no other process looks for abandoned files.
  func close() {
    file = nil
  }

  /// The prefix of the names of all staged files.
  static let prefix = ".DataStore-"

  /// Generates the names of one backend's staged files.
  ///
  /// No other backend, in this process or another one, generates the same names.
  struct Names {
    /// The prefix of all names of this backend.
    let prefix = StagedFile.prefix + UInt64.random(in: .min ... .max).hexadecimalDigits + "-"
    private var count = 0

    mutating func next() -> String {
      count += 1
      return prefix + String(count)
    }
  }

  /// Returns whether a file name is that of a staged file: `.DataStore-<hexadecimal digits>-<decimal digits>`.
  static func isName(_ name: String) -> Bool {
    guard name.hasPrefix(prefix) else { return false }
    let parts = name.dropFirst(prefix.count).split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { return false }
    return parts[0].allSatisfy { $0.isASCII && $0.isHexDigit } && parts[1].allSatisfy { ("0"..."9").contains($0) }
  }
}
