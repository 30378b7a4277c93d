/// The backend's name for one part of a value that is stored in parts: `<encoded name of the key>+<id of the part>`.
///
/// No key encodes to such a name, because `+` isn't a character of an encoded ``StoreKeyName``.
enum StorePartName {
  static let separator: Character = "+"

  static func encode(_ partID: String, of encodedKey: String) -> String {
    "\(encodedKey)\(separator)\(partID)"
  }

  /// Returns whether a name consists of an encoded key, the separator and a valid id of a part.
  static func isValid(_ name: String) -> Bool {
    let components = name.split(separator: separator, omittingEmptySubsequences: false)
    return components.count == 2 && StoreKeyName.isEncoded(String(components[0]))
      && PartID.isValid(String(components[1]))
  }

  /// Returns whether a name is that of a part, and not that of a key.
  ///
  /// Only the separator is looked for, so the name must be an encoded key or the name of a part, with or without the
  /// extension of a file name.
  static func isPart(_ name: String) -> Bool {
    name.utf8.contains(separator.asciiValue!)
  }
}
