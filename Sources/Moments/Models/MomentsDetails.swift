/// The timeline of one user: its owner, and its moments in the server's order, newest first.
///
/// A plain value that can be stored, compared and changed. It mirrors the server's JSON field by field. Decoding
/// ignores unknown fields and keeps moments of an unknown type (see `MomentType.unknown`), so a timeline from a newer
/// server can still be decoded.
public struct MomentsDetails: Codable, Hashable, Sendable {
  /// The user the timeline belongs to.
  public var userDetails: UserDetails
  /// The moments in the server's order.
  public var moments: [Moment]
  /// The position at which the moments end.
  ///
  /// `nil` if the timeline wasn't fetched in pages, for example because the server doesn't support them.
  public var pageInfo: PageInfo?

  /// Creates a timeline from its parts.
  public init(userDetails: UserDetails, moments: [Moment], pageInfo: PageInfo? = nil) {
    self.userDetails = userDetails
    self.moments = moments
    self.pageInfo = pageInfo
  }

  /// The owner of a timeline.
  public struct UserDetails: Codable, Hashable, Identifiable, Sendable {
    /// The server's identifier of the user.
    public var id: String
    /// The display name of the user.
    public var name: String
    /// The URL of the avatar, as text, because the server may send text that isn't a valid URL.
    public var avatar: String
    /// The URL of the background picture, as text.
    public var backgroundImage: String

    /// Creates the owner of a timeline.
    public init(id: String, name: String, avatar: String, backgroundImage: String) {
      self.id = id
      self.name = name
      self.avatar = avatar
      self.backgroundImage = backgroundImage
    }
  }

  /// Decodes a timeline, without the moments that are `null` because the server couldn't return them.
  ///
  /// - Parameter decoder: The decoder to read from.
  /// - Throws: `DecodingError`.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    userDetails = try container.decode(UserDetails.self, forKey: .userDetails)
    moments = try container.decode([Moment?].self, forKey: .moments).compactMap(\.self)
    pageInfo = try container.decodeIfPresent(PageInfo.self, forKey: .pageInfo)
  }
}
