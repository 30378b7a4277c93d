extension MomentsDetails.Moment {
  /// What a moment shows.
  ///
  /// A type this program does not know is kept as text: the moment stays on the timeline, and encoding it again gives
  /// the server's word back unchanged.
  public enum MomentType: RawRepresentable, Codable, Hashable, Sendable {
    /// A link, in ``MomentsDetails/Moment/url``.
    case url
    /// One photo or several, in ``MomentsDetails/Moment/photos``.
    case photos
    /// A type added to the server later, by its raw text.
    case unknown(String)

    /// Creates the type the server calls by `rawValue`; a word that is not known gives ``unknown(_:)``.
    public init(rawValue: String) {
      switch rawValue {
      case "URL": self = .url
      case "PHOTOS": self = .photos
      default: self = .unknown(rawValue)
      }
    }

    /// The server's word for the type.
    public var rawValue: String {
      switch self {
      case .url: "URL"
      case .photos: "PHOTOS"
      case .unknown(let rawValue): rawValue
      }
    }

    /// Compares by the server's word, so that a value equals what decoding its encoding gives.
    public static func == (lhs: Self, rhs: Self) -> Bool {
      lhs.rawValue == rhs.rawValue
    }

    /// Hashes the server's word.
    public func hash(into hasher: inout Hasher) {
      hasher.combine(rawValue)
    }
  }
}
