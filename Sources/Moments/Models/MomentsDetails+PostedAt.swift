package import Foundation

extension MomentsDetails.Moment {
  /// The creation date; `nil` if the server's text isn't a number of seconds.
  package var postedAt: Date? {
    // `TimeInterval` accepts "nan" and "inf".
    guard let seconds = TimeInterval(createdDate), seconds.isFinite else { return nil }
    return Date(timeIntervalSince1970: seconds)
  }
}
