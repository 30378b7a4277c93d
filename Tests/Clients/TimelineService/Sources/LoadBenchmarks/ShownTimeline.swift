internal import NIOCore

/// The likes that an event shows.
///
/// The likes of a timeline count in Gray code: each of them changes one moment, and the liked moments are the digits of
/// the number of likes that are shown. So the number is exact, whichever events a stream skips. The name of the
/// timeline's user is the number of likes that the server has made.
struct ShownTimeline {
  static let momentCount = 20

  /// The number of likes that the server has confirmed.
  let confirmedCount: Int
  /// The number of likes that the moments show, unless overlapping likes were made in another order.
  private let shownCount: Int

  /// Reads the content of an event.
  ///
  /// Searches for the two fields that it needs, because decoding whole timelines would take longer than the measured
  /// services.
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
    // Each digit of the number is the parity of the digits of the code from its place on.
    shownCount =
      liked.reversed().reduce(into: (count: 0, digit: false)) { number, isLiked in
        number.digit = number.digit != isLiked
        number.count = number.count << 1 | (number.digit ? 1 : 0)
      }.count
  }

  /// Returns the index right after each occurrence of a text.
  private static func places(of text: String, in bytes: [UInt8]) -> [Int] {
    let text = Array(text.utf8)
    return bytes.indices.dropLast(text.count).filter { start in
      // Two bytes are compared first, because that is fast and excludes almost all places.
      bytes[start] == text[0] && bytes[start + 2] == text[2] && bytes[start..<start + text.count].elementsEqual(text)
    }.map { $0 + text.count }
  }

  /// Returns the number of likes that are shown.
  ///
  /// - Parameters:
  ///   - shownBefore: The number of likes that the stream has shown before.
  ///   - made: The number of likes that were made so far.
  func likeCount(after shownBefore: Int, ofMade made: Int) -> Int {
    max(shownBefore, shownCount <= made ? shownCount : 0, min(confirmedCount, made))
  }

  /// The moment that a like changes; the first like is number 0.
  static func moment(ofLike number: Int) -> Int { (number + 1).trailingZeroBitCount }

  /// Whether the moment is liked after a like.
  static func isLiked(byLike number: Int) -> Bool {
    let code = (number + 1) ^ (number + 1) >> 1
    return code >> moment(ofLike: number) & 1 == 1
  }
}
