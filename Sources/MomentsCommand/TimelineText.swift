internal import Foundation
internal import Moments

/// How the command words what it prints.
enum TimelineText {
  /// The command speaks English wherever it runs.
  static let locale = Locale(identifier: "en_US")

  /// - Parameter likeCount: How many like it; the row has only the pictures that can be shown.
  static func row(_ moment: MomentListItemViewModel, likeCount: Int) -> String {
    let details = [moment.postDateDescription, likes(likeCount)].compactMap(\.self).joined(separator: ", ")
    return mark(isLiked: moment.isLiked) + heading(userName: moment.userName, title: moment.title) + " (\(details))"
  }

  static func heading(of moment: MomentsDetails.Moment) -> String {
    heading(userName: moment.userDetails.name, title: moment.title)
  }

  private static func heading(userName: String, title: String?) -> String {
    title.map { "\(userName): \($0)" } ?? userName
  }

  static func mark(isLiked: Bool) -> String { isLiked ? "♥ " : "· " }

  static func likes(_ count: Int) -> String { count == 1 ? "1 like" : "\(count) likes" }

  static func age(of date: Date, at now: Date) -> String {
    describe(date, at: now, presentation: .named)
  }

  /// When a moment was posted, as its row says it; nil when the server's text is no time.
  static func postDate(of moment: MomentsDetails.Moment, at now: Date) -> String? {
    moment.postedAt.map { describe($0, at: now, presentation: .numeric) }
  }

  private static func describe(
    _ date: Date, at now: Date, presentation: Date.RelativeFormatStyle.Presentation
  ) -> String {
    var style = Date.AnchoredRelativeFormatStyle(anchor: date, presentation: presentation, unitsStyle: .wide)
    style.locale = locale
    return style.format(now)
  }
}
