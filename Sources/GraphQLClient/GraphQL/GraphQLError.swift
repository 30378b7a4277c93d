/// One entry of the `errors` list in a GraphQL response.
///
/// The words in it are a server's, so creating or decoding an error cleans them: ``message``, ``code`` and the names in
/// ``path`` are on one line and without control characters. A message has at most ``APISessionError/excerptLength``
/// characters, a name at most 128.
public struct GraphQLError: Error, Hashable, Sendable {
  /// One step of the way from the root of the response to the field that failed.
  public enum PathElement: Hashable, Sendable {
    /// A field, by its name or alias in the response.
    case field(String)
    /// An element of a list, counted from 0.
    case index(Int)
  }

  /// The longest path that is kept; a longer one is cut.
  static let maximumPathLength = 32
  /// The most characters of a path in a description.
  private static let maximumPathWidth = 256

  /// What went wrong, in the server's words.
  public let message: String
  /// Where in the response it went wrong, if the server says so.
  ///
  /// Errors of the request as a whole have no path.
  public let path: [PathElement]?
  /// The server's machine-readable name for the error (`extensions.code`), if it gives one as text.
  public let code: String?
  /// What else the server says about the error, as it sent it.
  ///
  /// Empty where the server says nothing more, and where it sends more than a session keeps, see ``GraphQLResponse``.
  public let extensions: [String: JSONValue]

  /// Creates an error as a server would report it.
  ///
  /// - Parameters:
  ///   - message: What went wrong.
  ///   - path: Where it went wrong.
  ///   - code: The machine-readable name; `nil` takes the text under `code` in `extensions`.
  ///   - extensions: What else is known.
  public init(
    message: String, path: [PathElement]? = nil, code: String? = nil, extensions: [String: JSONValue] = [:]
  ) {
    self.message = ServerText.line(message)
    self.path = path.map { $0.prefix(Self.maximumPathLength).map(\.cleaned) }
    self.code = (code ?? extensions["code"]?.string).map(ServerText.name)
    self.extensions = extensions
  }
}

extension GraphQLError: CustomStringConvertible {
  /// The message, followed by the path and the code where there are any.
  public var description: String {
    let place = path.map { $0.map(\.description).joined(separator: ".") }
    let notes = [
      place.map { "at \(ServerText.line($0, maximumLength: Self.maximumPathWidth))" },
      code.map { "code \($0)" },
    ].compactMap(\.self)
    return notes.isEmpty ? message : "\(message) (\(notes.joined(separator: ", ")))"
  }
}

extension GraphQLError.PathElement: CustomStringConvertible {
  /// The field's name, or the index in decimal digits.
  public var description: String {
    switch self {
    case .field(let name): name
    case .index(let index): String(index)
    }
  }

  fileprivate var cleaned: Self {
    switch self {
    case .field(let name): .field(ServerText.name(name))
    case .index: self
    }
  }
}

extension GraphQLError: Decodable {
  private enum CodingKeys: CodingKey {
    case message, path, extensions
  }

  /// Decodes an entry of `errors`.
  ///
  /// A value that isn't a path, and extensions that can't be kept, are left out, because they must not hide the
  /// message.
  ///
  /// - Parameter decoder: The decoder to read from.
  /// - Throws: `DecodingError` when the message is missing.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      message: try container.decode(String.self, forKey: .message),
      path: Self.path(in: container),
      extensions: container.extensions(forKey: .extensions))
  }
}

extension GraphQLError {
  /// The path, as far as it is kept; `nil` if there is no path, or it isn't a list of names and numbers.
  private static func path(in container: KeyedDecodingContainer<CodingKeys>) -> [PathElement]? {
    guard var list = try? container.nestedUnkeyedContainer(forKey: .path) else { return nil }
    var path: [PathElement] = []
    while !list.isAtEnd, path.count < maximumPathLength {
      // Whatever is wrong with a step, the rest of the error counts.
      guard let step = try? list.decode(PathElement.self) else { return nil }
      path.append(step)
    }
    return path
  }
}

extension GraphQLError.PathElement: Decodable {
  /// Decodes a step: a number is an index, text is a field.
  ///
  /// - Parameter decoder: The decoder to read from.
  /// - Throws: `DecodingError` when the step is neither.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    do {
      self = .index(try container.decode(Int.self))
    } catch DecodingError.typeMismatch {
      self = .field(try container.decode(String.self))
    }
  }
}

extension KeyedDecodingContainer {
  /// The members of an `extensions` object; none where there is no such object, or more in it than is kept.
  func extensions(forKey key: Key) -> [String: JSONValue] {
    // Whatever is wrong with them, the rest of the response counts.
    (try? decodeIfPresent([String: JSONValue].self, forKey: key)) ?? [:]
  }
}
