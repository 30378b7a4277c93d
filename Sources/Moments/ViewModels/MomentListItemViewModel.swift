public import Foundation

/// The row of a moment on a timeline, with the actions to like and unlike it.
///
/// Two rows are equal if they display the same moment with the same content.
public struct MomentListItemViewModel: Sendable, Identifiable {
  /// The server's identifier of the moment.
  public let id: String
  /// The name of the moment's author.
  public let userName: String
  /// The URL of the author's avatar; `nil` if the server's text isn't a URL.
  public let userAvatarURL: URL?
  /// The text of the moment, if it has any.
  public let title: String?
  /// The URL of the first photo; `nil` if there is no photo, or if the server's text isn't a URL.
  public let photoURL: URL?
  /// The time since the moment was created, in words such as “3 hours ago”.
  ///
  /// `nil` if the server's creation date isn't a number of seconds. Seconds, minutes and hours are rounded to the
  /// nearest whole number: 90 seconds are “2 minutes ago”. Longer times are counted in calendar days, weeks, months and
  /// years.
  public let postDateDescription: String?
  /// Whether the timeline's user likes the moment; `false` if the request excluded likes.
  public let isLiked: Bool
  /// Whether ``isLiked`` includes a change that the server doesn't have yet.
  public let isPending: Bool
  /// The avatar URLs of the users who like the moment, in the server's order, without texts that aren't a URL.
  public let likes: [URL]
  /// The number of users who like the moment; 0 if the request excluded likes.
  public let likeCount: Int

  private let momentsRepo: any MomentsRepoType
  private let trackingRepo: any TrackingRepoType

  /// Creates the row of a moment.
  ///
  /// - Parameters:
  ///   - moment: The moment.
  ///   - isPending: Whether the server doesn't have the like, or its removal, yet.
  ///   - momentsRepo: The repository that receives likes.
  ///   - trackingRepo: The repository that receives tracking events; by default, they are discarded.
  ///   - now: The current time, to which `postDateDescription` is relative.
  ///   - locale: The language of `postDateDescription`.
  public init(
    moment: MomentsDetails.Moment, isPending: Bool = false, momentsRepo: any MomentsRepoType,
    trackingRepo: any TrackingRepoType = TrackingRepo(), now: Date = Date(), locale: Locale = .current
  ) {
    self.momentsRepo = momentsRepo
    self.trackingRepo = trackingRepo
    self.isPending = isPending
    id = moment.id
    userName = moment.userDetails.name
    userAvatarURL = URL(validating: moment.userDetails.avatar)
    title = moment.title
    photoURL = moment.photos.first.flatMap { URL(validating: $0) }
    isLiked = moment.isLiked ?? false
    likes = (moment.likes ?? []).compactMap { URL(validating: $0.avatar) }
    likeCount = moment.likes?.count ?? 0
    postDateDescription = moment.postedAt.map { Self.describe($0, relativeTo: now, locale: locale) }
  }

  /// Describes a date relative to the current time, such as "3 hours ago".
  private static func describe(_ date: Date, relativeTo now: Date, locale: Locale) -> String {
    var style = Date.AnchoredRelativeFormatStyle(anchor: date, presentation: .numeric, unitsStyle: .wide)
    style.locale = locale
    // Describes the anchor relative to the argument.
    return style.format(now)
  }

  /// Likes the moment.
  ///
  /// The action is tracked first, even if the call fails. Every observer of the repository sees the change, including
  /// the screen of this row.
  ///
  /// - Parameter userID: The id of the user who likes the moment.
  /// - Returns: ``MomentLikeOutcome/confirmed`` if the server has the like, otherwise ``MomentLikeOutcome/queued``.
  /// - Throws: A ``MomentsRepoError``; see ``MomentsRepoType/updateLike(isLiked:momentID:fromUserID:)``.
  @discardableResult
  public func like(from userID: String) async throws(MomentsRepoError) -> MomentLikeOutcome {
    trackingRepo.track(.momentLike(momentID: id, userID: userID))
    return try await momentsRepo.updateLike(isLiked: true, momentID: id, fromUserID: userID)
  }

  /// Removes the like of a user.
  ///
  /// The action is tracked first, even if the call fails. Every observer of the repository sees the change, including
  /// the screen of this row.
  ///
  /// - Parameter userID: The id of the user who liked the moment.
  /// - Returns: ``MomentLikeOutcome/confirmed`` if the server has the change, otherwise ``MomentLikeOutcome/queued``.
  /// - Throws: A ``MomentsRepoError``; see ``MomentsRepoType/updateLike(isLiked:momentID:fromUserID:)``.
  @discardableResult
  public func unlike(from userID: String) async throws(MomentsRepoError) -> MomentLikeOutcome {
    trackingRepo.track(.momentUnlike(momentID: id, userID: userID))
    return try await momentsRepo.updateLike(isLiked: false, momentID: id, fromUserID: userID)
  }
}

extension MomentListItemViewModel: Equatable {
  /// Returns whether two rows display the same moment with the same content.
  public static func == (left: Self, right: Self) -> Bool {
    left.id == right.id && left.userName == right.userName && left.userAvatarURL == right.userAvatarURL
      && left.title == right.title && left.photoURL == right.photoURL
      && left.postDateDescription == right.postDateDescription && left.isLiked == right.isLiked
      && left.isPending == right.isPending
      && left.likes == right.likes && left.likeCount == right.likeCount
  }
}
