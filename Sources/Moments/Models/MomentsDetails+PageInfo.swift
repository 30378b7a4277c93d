extension MomentsDetails {
  /// Where the moments of a timeline end, and whether there are older ones.
  public struct PageInfo: Codable, Hashable, Sendable {
    /// The cursor of the last moment, to ask for those behind it; `nil` if there is no moment.
    public var endCursor: String?
    /// Whether the server has older moments.
    public var hasNextPage: Bool

    /// Creates the end of a page.
    public init(endCursor: String?, hasNextPage: Bool) {
      self.endCursor = endCursor
      self.hasNextPage = hasNextPage
    }
  }
}
