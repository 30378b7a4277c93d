internal import Foundation
internal import Moments
internal import MomentsTesting

/// The timelines of the rows about moments, all of one user.
enum Timelines {
  static let userID = "0"
  /// The collection of the timelines in the store of every system.
  static let collection = "moments-details"

  /// Returns a timeline without likes.
  ///
  /// The timeline is decoded like the reply of a session, because copying a string literal costs nothing, unlike
  /// copying a decoded string.
  static func make(moments count: Int) throws -> MomentsDetails {
    let fixture = MomentsDetails.fixture(userID: userID, momentIDs: (0..<count).map { "\($0)" })
    return try JSONDecoder().decode(MomentsDetails.self, from: JSONEncoder().encode(fixture))
  }

  /// Returns the like of a moment, or its removal.
  static func like(of moment: Int, isLiked: Bool = true) -> MomentLike {
    MomentLike(userID: userID, momentID: "\(moment)", isLiked: isLiked)
  }
}
