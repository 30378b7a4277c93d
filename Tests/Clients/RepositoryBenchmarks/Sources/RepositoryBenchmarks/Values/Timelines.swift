internal import Moments
internal import MomentsTesting

/// The timelines that rows about moments use, all of one user.
enum Timelines {
  static let userID = "0"
  /// The collection in which all systems keep timelines.
  static let collection = "moments-details"

  /// A timeline without likes.
  static func make(moments count: Int) -> MomentsDetails {
    .fixture(userID: userID, momentIDs: (0..<count).map { "\($0)" })
  }

  /// The like of a moment, or its end.
  static func like(of moment: Int, isLiked: Bool = true) -> MomentLike {
    MomentLike(userID: userID, momentID: "\(moment)", isLiked: isLiked)
  }
}
