extension MomentsDetails.Moment {
  /// The kind of a moment's content.
  ///
  /// A type that this version of the package doesn't know is kept as ``unknown(_:)``. The moment stays on the timeline,
  /// and its type is encoded as the server's raw value.
  public enum MomentType: RawRepresentable, Codable, Hashable, Sendable {
    /// A link, in ``MomentsDetails/Moment/url``.
    case url
    /// One or more photos, in ``MomentsDetails/Moment/photos``.
    case photos
    /// A type that this version of the package doesn't know, with the server's raw value.
    case unknown(String)

    /// Creates a type from the server's raw value; ``unknown(_:)`` if the value isn't known.
    public init(rawValue: String) {
      switch rawValue {
      case "URL": self = .url
      case "PHOTOS": self = .photos
      default: self = .unknown(rawValue)
      }
    }

    /// The server's name of the type.
    public var rawValue: String {
      switch self {
      case .url: "URL"
      case .photos: "PHOTOS"
      case .unknown(let rawValue): rawValue
      }
    }

    /// Compares two types by their raw values.
    ///
    /// `.unknown("URL")` therefore equals ``url``, the type that it becomes when it is encoded and decoded.
    public static func == (lhs: Self, rhs: Self) -> Bool {
      lhs.rawValue == rhs.rawValue
    }

    /// Hashes the raw value.
    public func hash(into hasher: inout Hasher) {
      hasher.combine(rawValue)
    }
  }
}
