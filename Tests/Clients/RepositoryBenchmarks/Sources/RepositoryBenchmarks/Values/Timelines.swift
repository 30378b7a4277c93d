internal import Foundation
internal import Moments
internal import MomentsTesting

/// The timelines of the benchmark rows `timeline` and `likes`, all of one user.
enum Timelines {
  static let userID = "0"
  /// The collection in which every system stores the timelines.
  static let collection = "moments-details"

  /// Returns a timeline without likes.
  ///
  /// The timeline is decoded from JSON, as the reply of a server is. Copying a decoded string has a cost, but copying a
  /// string literal has none.
  static func make(moments count: Int) throws -> MomentsDetails {
    let fixture = MomentsDetails.fixture(userID: userID, momentIDs: (0..<count).map { "\($0)" })
    return try JSONDecoder().decode(MomentsDetails.self, from: JSONEncoder().encode(fixture))
  }

  /// Returns the like of a moment, or its removal.
  static func like(of moment: Int, isLiked: Bool = true) -> MomentLike {
    MomentLike(userID: userID, momentID: "\(moment)", isLiked: isLiked)
  }
}
