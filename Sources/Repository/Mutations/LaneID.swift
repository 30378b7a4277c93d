/// Identifies a lane: a FIFO of mutations, which are sent one after the other.
///
/// A lane belongs to one user at most, so that a user who has to sign in delays no other user.
struct LaneID: Hashable, Sendable {
  /// The user, or `nil` if the lane belongs to no user.
  let userID: String?
  /// The name of the lane among the lanes of its user; see ``MutableSource/orderingKey(of:on:)``.
  let orderingKey: String
}

extension LaneID: Comparable, CustomStringConvertible {
  /// The name of the lane in logs and reports.
  ///
  /// Two lanes may have the same description.
  var description: String {
    guard let userID, userID != orderingKey else { return orderingKey }
    return "\(userID)/\(orderingKey)"
  }

  static func < (first: LaneID, second: LaneID) -> Bool {
    (first.description, first.orderingKey, first.userID ?? "")
      < (second.description, second.orderingKey, second.userID ?? "")
  }
}
