/// Identifies a lane: a FIFO of mutations, which are sent one after the other.
///
/// A lane belongs to one user at most, so that a user who has to sign in delays no other user.
struct LaneID: Sendable {
  /// The user; `nil` if the lane belongs to no user, or if only the user's digest is known.
  let userID: String?
  /// The name of the lane among the lanes of its user; see ``MutableSource/orderingKey(of:on:)``.
  let orderingKey: String
  private let user: UserDigest

  init(userID: String?, orderingKey: String) {
    (self.userID, self.orderingKey, user) = (userID, orderingKey, UserDigest(userID))
  }

  /// Creates the id of the lane of a user whose id isn't known.
  init(_ user: UserDigest, orderingKey: String) {
    (userID, self.orderingKey, self.user) = (nil, orderingKey, user)
  }
}

extension LaneID: Hashable {
  static func == (first: LaneID, second: LaneID) -> Bool {
    first.user == second.user && first.orderingKey == second.orderingKey
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(user)
    hasher.combine(orderingKey)
  }
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
    (first.description, first.orderingKey, first.user.text)
      < (second.description, second.orderingKey, second.user.text)
  }
}
