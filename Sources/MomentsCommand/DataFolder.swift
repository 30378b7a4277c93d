internal import Foundation

/// Where the command keeps what.
enum DataFolder {
  /// The default data directory.
  static var `default`: URL {
    // There is always exactly one such folder in the user's domain.
    FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)[0]
      .appending(path: "moments", directoryHint: .isDirectory)
  }

  /// Where the timelines of a server are, and the likes for it, in a folder: no two URLs share a place, so that nothing
  /// is sent to another server than it was made for.
  static func timelines(of server: URL, in folder: URL) -> URL {
    // Not capital letters, as some file systems take them for small ones.
    let plain = CharacterSet(charactersIn: "abcdefghijklmnopqrstuvwxyz0123456789-.")
    guard let name = server.absoluteString.addingPercentEncoding(withAllowedCharacters: plain) else {
      preconditionFailure("The text of a URL is Unicode, which can always be encoded.")
    }
    return folder.appending(path: "servers", directoryHint: .isDirectory)
      .appending(component: name, directoryHint: .isDirectory)
  }
}
