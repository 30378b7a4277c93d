/// Identifies a lane of mutations.
///
/// A lane belongs to one user, so that a user who has to sign in delays no other user.
struct LaneID: Hashable, Sendable {
  /// The user, or `nil` if the lane belongs to no user.
  let userID: String?
  let orderingKey: String
}

extension LaneID: Comparable, CustomStringConvertible {
  /// The name for people, which two lanes may share.
  var description: String {
    guard let userID, userID != orderingKey else { return orderingKey }
    return "\(userID)/\(orderingKey)"
  }

  static func < (first: LaneID, second: LaneID) -> Bool {
    (first.description, first.orderingKey, first.userID ?? "")
      < (second.description, second.orderingKey, second.userID ?? "")
  }
}
