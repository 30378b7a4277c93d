extension MomentsDetails {
  /// One entry of a timeline.
  public struct Moment: Codable, Hashable, Identifiable, Sendable {
    /// The server's identifier of the moment.
    public var id: String
    /// Who posted the moment.
    public var userDetails: MomentUserDetails
    /// What the moment shows.
    public var type: MomentType
    /// The text of the moment, if it has any.
    public var title: String?
    /// The address of the link, as text, if the moment has one.
    public var url: String?
    /// The addresses of the photos, as text, in the order to show them.
    public var photos: [String]
    /// When the moment was created: seconds since 1970 in decimal digits, as the server sends them.
    public var createdDate: String
    /// Whether the reader likes the moment; `nil` when the request left likes out.
    public var isLiked: Bool?
    /// Who likes the moment; `nil` when the request left likes out.
    public var likes: [Like]?

    /// Creates a moment.
    ///
    /// - Parameters:
    ///   - id: The server's identifier of the moment.
    ///   - userDetails: Who posted it.
    ///   - type: What it shows.
    ///   - title: Its text, if any.
    ///   - url: The address of its link, if any.
    ///   - photos: The addresses of its photos in order.
    ///   - createdDate: Seconds since 1970 in decimal digits.
    ///   - isLiked: Whether the reader likes it; `nil` when unknown.
    ///   - likes: Who likes it; `nil` when unknown.
    public init(
      id: String,
      userDetails: MomentUserDetails,
      type: MomentType,
      title: String? = nil,
      url: String? = nil,
      photos: [String],
      createdDate: String,
      isLiked: Bool? = nil,
      likes: [Like]? = nil
    ) {
      self.id = id
      self.userDetails = userDetails
      self.type = type
      self.title = title
      self.url = url
      self.photos = photos
      self.createdDate = createdDate
      self.isLiked = isLiked
      self.likes = likes
    }

    /// The author of a moment, as shown beside it.
    public struct MomentUserDetails: Codable, Hashable, Sendable {
      /// The name to show.
      public var name: String
      /// The address of the avatar, as text.
      public var avatar: String

      /// Creates the author of a moment.
      public init(name: String, avatar: String) {
        self.name = name
        self.avatar = avatar
      }
    }

    /// One user's like of a moment.
    public struct Like: Codable, Hashable, Identifiable, Sendable {
      /// The server's identifier of the user who likes the moment.
      public var id: String
      /// The address of that user's avatar, as text.
      public var avatar: String

      /// Creates a like.
      public init(id: String, avatar: String) {
        self.id = id
        self.avatar = avatar
      }
    }
  }
}
