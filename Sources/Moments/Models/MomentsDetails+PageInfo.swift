extension MomentsDetails {
  /// The position at which the moments of a timeline end, and whether older moments exist.
  public struct PageInfo: Codable, Hashable, Sendable {
    /// The cursor of the last moment, after which the next page begins; `nil` if there is no moment.
    public var endCursor: String?
    /// Whether the server has older moments.
    public var hasNextPage: Bool

    /// Creates a page info.
    public init(endCursor: String?, hasNextPage: Bool) {
      self.endCursor = endCursor
      self.hasNextPage = hasNextPage
    }
  }
}
