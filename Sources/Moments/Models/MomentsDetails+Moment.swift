extension MomentsDetails {
  /// One entry of a timeline.
  public struct Moment: Codable, Hashable, Identifiable, Sendable {
    /// The server's identifier of the moment.
    public var id: String
    /// The author of the moment.
    public var userDetails: MomentUserDetails
    /// The kind of the moment's content.
    public var type: MomentType
    /// The text of the moment, if it has any.
    public var title: String?
    /// The URL of the link, as text, if the moment has a link.
    public var url: String?
    /// The URLs of the photos, as text, in display order.
    public var photos: [String]
    /// The creation date in seconds since 1970, in decimal digits as the server sends them.
    public var createdDate: String
    /// Whether the timeline's owner likes the moment; `nil` if the request excluded likes.
    public var isLiked: Bool?
    /// The likes of the moment; `nil` if the request excluded likes.
    public var likes: [Like]?

    /// Creates a moment.
    ///
    /// - Parameters:
    ///   - id: The server's identifier of the moment.
    ///   - userDetails: The author of the moment.
    ///   - type: The kind of its content.
    ///   - title: Its text, if any.
    ///   - url: The URL of its link, if any.
    ///   - photos: The URLs of its photos, in display order.
    ///   - createdDate: The creation date in seconds since 1970, in decimal digits.
    ///   - isLiked: Whether the timeline's owner likes the moment; `nil` if unknown.
    ///   - likes: The likes of the moment; `nil` if unknown.
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

    /// Decodes a moment, without the photos and likes that are `null` because the server couldn't return them.
    ///
    /// - Parameter decoder: The decoder to read from.
    /// - Throws: `DecodingError`.
    public init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      id = try container.decode(String.self, forKey: .id)
      userDetails = try container.decode(MomentUserDetails.self, forKey: .userDetails)
      type = try container.decode(MomentType.self, forKey: .type)
      title = try container.decodeIfPresent(String.self, forKey: .title)
      url = try container.decodeIfPresent(String.self, forKey: .url)
      photos = try container.decodeIfPresent([String?].self, forKey: .photos)?.compactMap(\.self) ?? []
      createdDate = try container.decode(String.self, forKey: .createdDate)
      isLiked = try container.decodeIfPresent(Bool.self, forKey: .isLiked)
      likes = try container.decodeIfPresent([Like?].self, forKey: .likes)?.compactMap(\.self)
    }

    /// The author of a moment.
    public struct MomentUserDetails: Codable, Hashable, Sendable {
      /// The display name of the author.
      public var name: String
      /// The URL of the avatar, as text.
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
      /// The URL of that user's avatar, as text.
      public var avatar: String

      /// Creates a like.
      public init(id: String, avatar: String) {
        self.id = id
        self.avatar = avatar
      }
    }
  }
}
