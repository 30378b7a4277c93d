public import Repository

/// A mutation that sets whether a user likes a moment.
///
/// A ``MomentsRepo`` queues and sends it. While it is pending, observers see the stored timeline with the like applied.
public struct MomentLike: RepositoryMutation, Codable, Hashable, Sendable {
  /// The identifier of the user who likes or unlikes the moment, and whose timeline shows it.
  public let userID: String
  /// The identifier of the moment.
  public let momentID: String
  /// Whether the user likes the moment from now on.
  public let isLiked: Bool

  /// Creates a like, or an unlike if `isLiked` is false.
  public init(userID: String, momentID: String, isLiked: Bool) {
    self.userID = userID
    self.momentID = momentID
    self.isLiked = isLiked
  }

  /// Changes a timeline as the server does when it accepts the like.
  ///
  /// Leaves the timeline unchanged if it doesn't contain the moment, or if the moment already has the same `isLiked`. A
  /// list of likes that the server left out stays `nil`.
  ///
  /// - Complexity: O(*n* + *m*), where *n* is the number of moments and *m* is the number of the moment's likes.
  public func apply(to details: inout MomentsDetails) {
    guard let index = details.moments.firstIndex(where: { $0.id == momentID }),
      details.moments[index].isLiked != isLiked
    else { return }
    details.moments[index].isLiked = isLiked
    guard let likes = details.moments[index].likes else { return }
    if !isLiked {
      details.moments[index].likes = likes.filter { $0.id != userID }
    } else if !likes.contains(where: { $0.id == userID }) {
      details.moments[index].likes = likes + [.init(id: userID, avatar: details.userDetails.avatar)]
    }
  }
}
