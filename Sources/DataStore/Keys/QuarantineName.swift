internal import Foundation

/// The parts of a name under which a commit quarantines bytes; see ``StoreBackend/quarantineName(for:at:attempt:)``.
struct QuarantineName {
  /// The encoded key whose bytes are quarantined.
  let encodedKey: String
  /// The time of the quarantine, and the number that tells the name from others of that time.
  let time: String

  /// Parses a name, or returns `nil` for every other text, such as the name of a value or of a part.
  init?(_ name: String) {
    // Neither an encoded key nor the id of a part contains this letter.
    guard name.utf8.contains(UInt8(ascii: "Z")),
      let mark = name.range(of: StoredItem.quarantineMark, options: .backwards)
    else { return nil }
    let (encodedKey, time) = (String(name[..<mark.lowerBound]), String(name[mark.upperBound...]))
    guard StoreKeyName.isEncoded(encodedKey), time.wholeMatch(of: /\d{8}T\d{6}\.\d{3}Z(-\d+)?/) != nil else {
      return nil
    }
    (self.encodedKey, self.time) = (encodedKey, time)
  }
}

extension String {
  /// Returns a name for quarantined bytes that no other quarantined bytes have.
  ///
  /// A commit can't look for a free name before it prepares its writes, so a random number makes the name unique.
  static func uniqueQuarantineName(for name: String, at time: Date) -> String {
    StoredItem.quarantineName(for: name, at: time, attempt: .random(in: 1_000_000_000..<10_000_000_000))
  }
}
