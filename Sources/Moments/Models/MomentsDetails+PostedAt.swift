package import Foundation

extension MomentsDetails.Moment {
  /// When it was posted; nil when the server's text is no time.
  package var postedAt: Date? {
    // "nan" and "inf" are numbers too.
    guard let seconds = TimeInterval(createdDate), seconds.isFinite else { return nil }
    return Date(timeIntervalSince1970: seconds)
  }
}
