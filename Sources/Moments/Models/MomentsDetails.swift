/// The timeline of one user: who it belongs to, and the moments on it, newest first as the server sends them.
///
/// A plain value that mirrors the server's JSON field by field, so that it can be stored, compared and edited by
/// laying a change over a copy. It decodes replies with fields it does not know, and keeps moments whose type it does
/// not know (see ``MomentType/unknown(_:)``): a newer server never costs the reader the timeline.
public struct MomentsDetails: Codable, Hashable, Sendable {
  /// The user the timeline belongs to.
  public var userDetails: UserDetails
  /// The moments in the server's order.
  public var moments: [Moment]
  /// Where the moments end; `nil` where the server does not page, and in what was stored before it did.
  public var pageInfo: PageInfo?

  /// Creates a timeline from its parts.
  public init(userDetails: UserDetails, moments: [Moment], pageInfo: PageInfo? = nil) {
    self.userDetails = userDetails
    self.moments = moments
    self.pageInfo = pageInfo
  }

  /// The owner of a timeline, as shown in its header.
  public struct UserDetails: Codable, Hashable, Identifiable, Sendable {
    /// The server's identifier of the user.
    public var id: String
    /// The name to show.
    public var name: String
    /// The address of the avatar, as text: the server may send what is not a URL.
    public var avatar: String
    /// The address of the picture behind the header, as text.
    public var backgroundImage: String

    /// Creates the owner of a timeline.
    public init(id: String, name: String, avatar: String, backgroundImage: String) {
      self.id = id
      self.name = name
      self.avatar = avatar
      self.backgroundImage = backgroundImage
    }
  }
}
