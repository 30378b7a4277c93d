internal import GraphQLClient
internal import Moments
internal import Synchronization

/// The server of the timelines, within the process of a service.
///
/// It answers at once. A like sets or clears `isLiked` of a moment. The name of a timeline's user is the number of
/// likes that the server has applied to the timeline; see ``ShownTimeline``.
final class Upstream: GetMomentsByUserIDSessionType, UpdateMomentLikeSessionType {
  private let timelines: Mutex<[String: (details: MomentsDetails, likeCount: Int)]>

  init(timelines count: Int) {
    let moments = (0..<ShownTimeline.momentCount).map { number in
      MomentsDetails.Moment(
        id: "\(number)", userDetails: .init(name: "Taylor Swift", avatar: "https://example.com/avatars/1.png"),
        type: .photos, title: "the pic is awesome", url: nil, photos: ["https://example.com/photos/\(number).png"],
        createdDate: "\(1_605_521_360 - number)", isLiked: false, likes: [])
    }
    let timelines = (0..<count).map { number in
      let user = MomentsDetails.UserDetails(
        id: "\(number)", name: "0", avatar: "https://example.com/avatars/\(number).png",
        backgroundImage: "https://example.com/backgrounds/\(number).png")
      return ("\(number)", (details: MomentsDetails(userDetails: user, moments: moments), likeCount: 0))
    }
    self.timelines = Mutex(Dictionary(uniqueKeysWithValues: timelines))
  }

  func getMoments(userID: String) async throws(APISessionError) -> MomentsDetails {
    try details(of: userID) { _ in false }
  }

  func updateLike(
    _ isLiked: Bool, momentID: String, fromUserID userID: String
  ) async throws(APISessionError) -> MomentsDetails {
    try details(of: userID) { details in
      guard let index = details.moments.firstIndex(where: { $0.id == momentID }) else { return false }
      details.moments[index].isLiked = isLiked
      return true
    }
  }

  /// Returns the timeline of a user after a call of `applyLike`, which returns whether it has applied a like.
  private func details(
    of userID: String, _ applyLike: (inout MomentsDetails) -> Bool
  ) throws(APISessionError) -> MomentsDetails {
    let details = timelines.withLock { timelines -> MomentsDetails? in
      guard var timeline = timelines[userID] else { return nil }
      if applyLike(&timeline.details) {
        timeline.likeCount += 1
        timeline.details.userDetails.name = "\(timeline.likeCount)"
        timelines[userID] = timeline
      }
      return timeline.details
    }
    guard let details else { throw .graphQL([GraphQLError(message: "There is no user \(userID).")]) }
    return details
  }
}
