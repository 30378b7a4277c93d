internal import Foundation
internal import Moments
internal import MomentsTesting

/// The timelines that rows about moments use, all of one user.
enum Timelines {
  static let userID = "0"
  /// The collection in which all systems keep timelines.
  static let collection = "moments-details"

  /// A timeline without likes, decoded as a session's are: a literal's text costs nothing to copy, which a reply's does.
  static func make(moments count: Int) throws -> MomentsDetails {
    let fixture = MomentsDetails.fixture(userID: userID, momentIDs: (0..<count).map { "\($0)" })
    return try JSONDecoder().decode(MomentsDetails.self, from: JSONEncoder().encode(fixture))
  }

  /// The like of a moment, or its end.
  static func like(of moment: Int, isLiked: Bool = true) -> MomentLike {
    MomentLike(userID: userID, momentID: "\(moment)", isLiked: isLiked)
  }
}
