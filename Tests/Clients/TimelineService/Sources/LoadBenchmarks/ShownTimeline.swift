internal import NIOCore

/// The likes that an event shows.
///
/// The `isLiked` values of a timeline's moments are the digits of the timeline's number of likes, in Gray code: each
/// like sets or clears one digit. So an event shows this number even if the stream skipped earlier events. The number
/// is wrong if overlapping likes were applied out of order; see ``likeCount(after:outOf:)``. The name of the timeline's
/// user is the number of likes that the server has applied, and so confirmed.
struct ShownTimeline {
  /// The number of moments of a timeline, and therefore of the code's digits.
  static let momentCount = 20

  /// The number of likes that the server has confirmed.
  let confirmedCount: Int
  /// The number of likes that the moments show, which is wrong if overlapping likes were applied out of order.
  private let shownCount: Int

  /// Reads the content of an event.
  ///
  /// Searches for the two fields that it needs, because decoding whole timelines would take more processor time than
  /// the measured services use.
  init(_ content: ByteBufferView) {
    let bytes = Array(content)
    let areLiked = Self.endIndices(of: #""isLiked":"#, in: bytes).map { bytes[$0] == UInt8(ascii: "t") }
    // The last field `name` is that of the timeline's user, which follows the moments because the keys are sorted.
    let name = Self.endIndices(of: #""name":""#, in: bytes).last
      .map { bytes[$0...].prefix { $0 != UInt8(ascii: "\"") } }
    guard areLiked.count == Self.momentCount, let name, let confirmedCount = Int(String(decoding: name, as: UTF8.self))
    else {
      preconditionFailure(
        "An event has no timeline whose user's name is a number of likes: \(String(decoding: content, as: UTF8.self))")
    }
    self.confirmedCount = confirmedCount
    // Each binary digit of the number is the parity of the code's digits at its place and above. The first moment is
    // the lowest digit, so the loop starts with the last moment.
    shownCount =
      areLiked.reversed().reduce(into: (count: 0, lastDigit: false)) { result, isLiked in
        result.lastDigit = result.lastDigit != isLiked
        result.count = result.count << 1 | (result.lastDigit ? 1 : 0)
      }.count
  }

  /// Returns the index right after each occurrence of a text.
  private static func endIndices(of text: String, in bytes: [UInt8]) -> [Int] {
    let text = Array(text.utf8)
    return bytes.indices.dropLast(text.count).filter { start in
      // Two bytes are compared first, because that is fast and excludes almost all places.
      bytes[start] == text[0] && bytes[start + 2] == text[2] && bytes[start..<start + text.count].elementsEqual(text)
    }.map { $0 + text.count }
  }

  /// Returns the number of likes that a stream has shown, up to and including this event.
  ///
  /// The result is never less than `shownBefore`. The number that the moments show is ignored if it is greater than the
  /// number of likes that were started, because overlapping likes were then applied out of order. If a faulty server
  /// confirms more likes than were started, the result doesn't count the excess.
  ///
  /// - Parameters:
  ///   - shownBefore: The number of likes that the stream has shown before.
  ///   - startedCount: The number of likes that were started so far, whether or not the server has received them.
  func likeCount(after shownBefore: Int, outOf startedCount: Int) -> Int {
    max(shownBefore, shownCount <= startedCount ? shownCount : 0, min(confirmedCount, startedCount))
  }

  /// Returns the moment that a like changes; the first like is number 0.
  static func moment(ofLike number: Int) -> Int { (number + 1).trailingZeroBitCount }

  /// Returns whether a like sets `isLiked` of its moment, as opposed to clearing it.
  static func isLiked(byLike number: Int) -> Bool {
    let code = (number + 1) ^ (number + 1) >> 1
    return code >> moment(ofLike: number) & 1 == 1
  }
}
