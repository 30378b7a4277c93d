internal import Foundation
internal import Moments

/// The likes that an event shows.
///
/// Likes go round: each takes the next moment, and every second round takes the likes back. So the moments that are liked tell
/// the number of all likes that are shown, up to a multiple of two rounds. The server's own count is the name of the user; the
/// likes that wait for the server come on top of it. Where more than two rounds wait, the result is too low.
struct ShownTimeline {
  static let momentCount = 20

  private struct Content: Decodable {
    let timeline: MomentsDetails
  }

  /// The number of likes that the server has confirmed.
  let confirmedCount: Int
  /// The number of likes that are shown.
  let likeCount: Int

  /// Reads the content of an event.
  init(_ content: Substring) {
    do {
      let timeline = try JSONDecoder().decode(Content.self, from: Data(content.utf8)).timeline
      guard let confirmedCount = Int(timeline.userDetails.name) else {
        preconditionFailure("The user's name is no number of likes.")
      }
      self.confirmedCount = confirmedCount
      likeCount = Self.likeCount(confirmedCount, timeline.moments.map { $0.isLiked ?? false })
    } catch {
      preconditionFailure("An event has no timeline: \(error)")
    }
  }

  private static func likeCount(_ confirmedCount: Int, _ liked: [Bool]) -> Int {
    let changes = liked.prefix { $0 == liked[0] }.count
    // Likes that overlap may have changed places.
    guard liked.dropFirst(changes).allSatisfy({ $0 != liked[0] }) else { return confirmedCount }
    let period = 2 * momentCount
    let shown = changes == liked.count ? (liked[0] ? momentCount : 0) : changes + (liked[0] ? 0 : momentCount)
    return confirmedCount + (shown - confirmedCount % period + period) % period
  }

  /// The moment that a like changes.
  static func moment(ofLike number: Int) -> Int { number % momentCount }

  /// Whether the moment is liked after a like.
  static func isLiked(byLike number: Int) -> Bool { (number / momentCount).isMultiple(of: 2) }
}
