/// A user's wish to like a moment, or to like it no more.
///
/// What the queue of a ``MomentsRepo`` keeps and sends, and what it lays over the stored timeline meanwhile.
public struct MomentLike: Codable, Hashable, Sendable {
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
  /// A timeline without the moment stays as it is, and so do likes that the server left out.
  func apply(to details: inout MomentsDetails) {
    guard let index = details.moments.firstIndex(where: { $0.id == momentID }) else { return }
    details.moments[index].isLiked = isLiked
    guard let likes = details.moments[index].likes else { return }
    if !isLiked {
      details.moments[index].likes = likes.filter { $0.id != userID }
    } else if !likes.contains(where: { $0.id == userID }) {
      details.moments[index].likes = likes + [.init(id: userID, avatar: details.userDetails.avatar)]
    }
  }
}
