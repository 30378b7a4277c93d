public import Repository

/// A user's wish to like a moment, or to like it no more.
///
/// A ``MomentsRepo`` queues and sends it, and applies it to the stored timeline meanwhile.
public struct MomentLike: RepositoryMutation, Codable, Hashable, Sendable {
  /// Who likes it, and whose timeline shows it.
  public let userID: String
  /// The moment.
  public let momentID: String
  /// Whether the user likes the moment from now on.
  public let isLiked: Bool

  /// Creates a like, or the end of one.
  public init(userID: String, momentID: String, isLiked: Bool) {
    self.userID = userID
    self.momentID = momentID
    self.isLiked = isLiked
  }

  /// Makes a timeline what it will be when the server has taken the like.
  ///
  /// A timeline without the moment stays as it is, and so does one that has the like, and likes that the server left out.
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
