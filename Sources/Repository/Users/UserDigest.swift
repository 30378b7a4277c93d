internal import Foundation

/// Stands for a user in the store, which keeps it after the user has signed out.
///
/// It hides nothing from somebody who tries ids. It is there so that the id itself is nowhere.
///
/// Made by 64-bit FNV-1a, as <http://www.isthe.com/chongo/tech/comp/fnv/> describes it: of the users of one device no two
/// have the same.
struct UserDigest: Hashable, Sendable {
  let text: String

  /// - Parameter userID: The user; `nil` for the values that belong to no user.
  init(_ userID: String?) {
    guard let userID else {
      text = "none"
      return
    }
    // Swift compares strings by canonical equivalence, so equal ids must have equal bytes.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in userID.precomposedStringWithCanonicalMapping.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0100_0000_01b3 }
    text = String(hash, radix: 16)
  }

  /// - Parameter text: The ``text`` of another one.
  init(text: String) {
    self.text = text
  }
}
