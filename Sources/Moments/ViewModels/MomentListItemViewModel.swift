public import Foundation

/// A moment of a timeline, ready to show, and what a person can do with it.
///
/// Two rows are equal when they show the same.
public struct MomentListItemViewModel: Sendable, Identifiable {
  /// The server's identifier of the moment.
  public let id: String
  /// The name of the user who posted it.
  public let userName: String
  /// The picture of the user who posted it; nil when the server's text is no URL.
  public let userAvatarURL: URL?
  /// What the user wrote.
  public let title: String?
  /// The first photo; `nil` if there is no photo, or the server's text isn't a URL.
  public let photoURL: URL?
  /// How long ago it was posted, in words; nil when the server's text is no time.
  public let postDateDescription: String?
  /// Whether the timeline's user likes it; false when the server left that out.
  public let isLiked: Bool
  /// Whether that is a wish of the user that the server does not have yet.
  public let isPending: Bool
  /// The pictures of the users who like it, in the server's order, without texts that aren't a URL.
  public let likes: [URL]
  /// How many users like it.
  public let likeCount: Int

  private let momentsRepo: any MomentsRepoType
  private let trackingRepo: any TrackingRepoType

  /// Creates the row of a moment.
  ///
  /// - Parameters:
  ///   - moment: What to show.
  ///   - isPending: Whether the server does not have the moment's like yet.
  ///   - momentsRepo: Where a like goes.
  ///   - trackingRepo: Where taps are reported; by default nowhere.
  ///   - now: The time that `postDateDescription` counts from.
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
    postDateDescription = moment.postedAt.map { Self.describe($0, from: now, locale: locale) }
  }

  /// A time in words, seen from another: "3 hours ago".
  private static func describe(_ date: Date, from now: Date, locale: Locale) -> String {
    var style = Date.AnchoredRelativeFormatStyle(anchor: date, presentation: .numeric, unitsStyle: .wide)
    style.locale = locale
    return style.format(now)
  }

  /// Likes the moment.
  ///
  /// The tap is tracked first, whatever becomes of the call. The change arrives at every observer of the repository, so
  /// at this row's screen too.
  ///
  /// - Parameter userID: Who likes it.
  /// - Returns: Whether the server has it, or it is durably queued.
  /// - Throws: ``MomentsRepoError``; then nothing changed.
  @discardableResult
  public func like(from userID: String) async throws(MomentsRepoError) -> MomentLikeOutcome {
    trackingRepo.track(.momentLike(momentID: id, userID: userID))
    return try await momentsRepo.updateLike(isLiked: true, momentID: id, fromUserID: userID)
  }

  /// Takes a like back.
  ///
  /// The tap is tracked first, whatever becomes of the call. The change arrives at every observer of the repository, so
  /// at this row's screen too.
  ///
  /// - Parameter userID: Who liked it.
  /// - Returns: Whether the server has it, or it is durably queued.
  /// - Throws: ``MomentsRepoError``; then nothing changed.
  @discardableResult
  public func unlike(from userID: String) async throws(MomentsRepoError) -> MomentLikeOutcome {
    trackingRepo.track(.momentUnlike(momentID: id, userID: userID))
    return try await momentsRepo.updateLike(isLiked: false, momentID: id, fromUserID: userID)
  }
}

extension MomentListItemViewModel: Equatable {
  /// Whether two rows show the same.
  public static func == (left: Self, right: Self) -> Bool {
    left.id == right.id && left.userName == right.userName && left.userAvatarURL == right.userAvatarURL
      && left.title == right.title && left.photoURL == right.photoURL
      && left.postDateDescription == right.postDateDescription && left.isLiked == right.isLiked
      && left.isPending == right.isPending
      && left.likes == right.likes && left.likeCount == right.likeCount
  }
}
