internal import Foundation
internal import Moments

/// The wording of the command's output.
enum TimelineText {
  /// The locale of the output, which is English on every system.
  static let locale = Locale(identifier: "en_US")

  static func row(_ moment: MomentListItemViewModel) -> String {
    let ageAndLikes = [moment.postDateDescription, likes(moment.likeCount)].compactMap(\.self).joined(separator: ", ")
    return mark(isLiked: moment.isLiked) + heading(userName: moment.userName, title: moment.title) + " (\(ageAndLikes))"
  }

  static func heading(of moment: MomentsDetails.Moment) -> String {
    heading(userName: moment.userDetails.name, title: moment.title)
  }

  static func heading(userName: String, title: String?) -> String {
    title.map { "\(userName): \($0)" } ?? userName
  }

  static func mark(isLiked: Bool) -> String { isLiked ? "♥ " : "· " }

  static func moments(_ count: Int) -> String { count == 1 ? "1 moment" : "\(count) moments" }

  static func likes(_ count: Int) -> String { count == 1 ? "1 like" : "\(count) likes" }

  static func age(of date: Date, at now: Date) -> String {
    var style = Date.AnchoredRelativeFormatStyle(anchor: date, presentation: .named, unitsStyle: .wide)
    style.locale = locale
    return style.format(now)
  }
}
