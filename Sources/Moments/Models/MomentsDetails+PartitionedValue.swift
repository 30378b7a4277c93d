public import DataStore

/// A store keeps the moments in chunks, so a like writes one chunk and not the entire timeline.
extension MomentsDetails: PartitionedValue {
  /// The timeline without its moments.
  public struct Head: Codable, Hashable, Sendable {
    fileprivate let userDetails: UserDetails
    fileprivate let pageInfo: PageInfo?
  }

  /// Creates a timeline from its head and its moments.
  public init(head: Head, elements: [Moment]) {
    self.init(userDetails: head.userDetails, moments: elements, pageInfo: head.pageInfo)
  }

  /// The timeline without its moments.
  public var head: Head { Head(userDetails: userDetails, pageInfo: pageInfo) }

  /// The moments in the server's order.
  public var elements: [Moment] {
    get { moments }
    set { moments = newValue }
  }
}
