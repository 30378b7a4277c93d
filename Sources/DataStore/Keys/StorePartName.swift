/// The backend's name for one part of a value that is stored in parts: `<encoded name of the key>+<id of the part>`.
///
/// No key encodes to such a name, because `+` isn't a character of an encoded ``StoreKeyName``.
enum StorePartName {
  static let separator: Character = "+"

  static func encode(_ partID: String, of name: String) -> String {
    "\(name)\(separator)\(partID)"
  }

  /// Returns whether a name consists of an encoded key, the separator and a valid id of a part.
  static func isValid(_ name: String) -> Bool {
    let words = name.split(separator: separator, omittingEmptySubsequences: false)
    return words.count == 2 && StoreKeyName(encoded: String(words[0])) != nil && PartID.isValid(String(words[1]))
  }

  static func isPart(_ name: String) -> Bool {
    name.utf8.contains(separator.asciiValue!)
  }
}
