internal import Foundation

/// The folders in which the command stores data.
enum DataFolder {
  /// The default data directory.
  static var `default`: URL {
    // The user's domain has exactly one such folder.
    FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)[0]
      .appending(path: "moments", directoryHint: .isDirectory)
  }

  /// Returns the subfolder for the timelines and the pending likes of a server.
  ///
  /// Each server URL has its own subfolder, so that a like is sent only to the server that it was made for.
  static func timelines(of server: URL, in folder: URL) -> URL {
    // Capital letters are encoded, because some file systems ignore case.
    let unencodedCharacters = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyz0123456789-.")
    guard let name = server.absoluteString.addingPercentEncoding(withAllowedCharacters: unencodedCharacters) else {
      preconditionFailure("The text of a URL is Unicode, which can always be encoded.")
    }
    return folder.appending(path: "servers", directoryHint: .isDirectory)
      .appending(component: name, directoryHint: .isDirectory)
  }
}
