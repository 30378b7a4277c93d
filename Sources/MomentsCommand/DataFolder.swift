internal import Foundation

/// Where the command keeps what it is not told where to keep.
enum DataFolder {
  static var `default`: URL {
    // There is always exactly one such folder in the user's domain.
    FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)[0]
      .appending(path: "moments", directoryHint: .isDirectory)
  }
}
