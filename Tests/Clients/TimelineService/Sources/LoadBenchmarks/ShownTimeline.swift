internal import NIOCore

/// The likes that an event shows.
///
/// Likes go round: each takes the next moment, and every second round takes the likes back. So the moments that are liked tell
/// the number of all likes that are shown, up to a multiple of two rounds. The server's own count is the name of the user; the
/// likes that wait for the server come on top of it.
struct ShownTimeline {
  static let momentCount = 20

  private static let period = 2 * momentCount

  /// The number of likes that the server has confirmed.
  let confirmedCount: Int
  /// The remainder of the number of likes that are shown, divided by the period; `nil` if likes that overlap have changed
  /// places.
  private let remainder: Int?

  /// Reads the content of an event.
  ///
  /// Searches for the two fields that it needs, because decoding whole timelines would take longer than the services that are
  /// measured.
  init(_ content: ByteBufferView) {
    let bytes = Array(content)
    let liked = Self.places(of: #""isLiked":"#, in: bytes).map { bytes[$0] == UInt8(ascii: "t") }
    // The user follows the moments, because the keys are sorted.
    let name = Self.places(of: #""name":""#, in: bytes).last.map { bytes[$0...].prefix { $0 != UInt8(ascii: "\"") } }
    guard liked.count == Self.momentCount, let name, let confirmedCount = Int(String(decoding: name, as: UTF8.self))
    else {
      preconditionFailure(
        "An event has no timeline with a number of likes: \(String(decoding: content, as: UTF8.self))")
    }
    self.confirmedCount = confirmedCount
    remainder = Self.remainder(liked)
  }

  /// Returns the places right behind each occurrence of a text.
  private static func places(of text: String, in bytes: [UInt8]) -> [Int] {
    let text = Array(text.utf8)
    return bytes.indices.dropLast(text.count).filter { start in
      bytes[start] == text[0] && bytes[start + 2] == text[2] && bytes[start..<start + text.count].elementsEqual(text)
    }.map { $0 + text.count }
  }

  private static func remainder(_ liked: [Bool]) -> Int? {
    let changes = liked.prefix { $0 == liked[0] }.count
    guard liked.dropFirst(changes).allSatisfy({ $0 != liked[0] }) else { return nil }
    if changes == liked.count { return liked[0] ? momentCount : 0 }
    return changes + (liked[0] ? 0 : momentCount)
  }

  /// Returns the number of likes that are shown, which is too low if a stream has missed two rounds.
  ///
  /// - Parameters:
  ///   - shownBefore: The number of likes that the stream has shown before.
  ///   - made: The number of likes that were made so far.
  func likeCount(after shownBefore: Int, ofMade made: Int) -> Int {
    let least = min(max(shownBefore, confirmedCount), made)
    guard let remainder else { return least }
    let count = least + (remainder - least % Self.period + Self.period) % Self.period
    return count <= made ? count : least
  }

  /// The moment that a like changes.
  static func moment(ofLike number: Int) -> Int { number % momentCount }

  /// Whether the moment is liked after a like.
  static func isLiked(byLike number: Int) -> Bool { (number / momentCount).isMultiple(of: 2) }
}
