/// One entry of the `errors` list in a GraphQL reply.
public struct GraphQLError: Error, Hashable, Sendable {
  /// One step of the way from the root of the reply to the field that failed.
  public enum PathElement: Hashable, Sendable {
    /// A field, by its name or alias in the reply.
    case field(String)
    /// An element of a list, counted from 0.
    case index(Int)
  }

  /// What went wrong, in the server's words.
  public var message: String
  /// Where in the reply it went wrong, if the server says so.
  public var path: [PathElement]?
  /// The server's machine-readable name for the error (`extensions.code`), if it gives one as text.
  public var code: String?

  /// Creates an error as a server would report it.
  public init(message: String, path: [PathElement]? = nil, code: String? = nil) {
    self.message = message
    self.path = path
    self.code = code
  }
}

extension GraphQLError: CustomStringConvertible {
  /// The message, followed by the path and the code where there are any.
  public var description: String {
    let notes = [
      path.map { "at \($0.map(\.description).joined(separator: "."))" },
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
}

extension GraphQLError: Decodable {
  private enum CodingKeys: CodingKey {
    case message, path, extensions
  }

  private enum ExtensionKeys: CodingKey {
    case code
  }

  /// Decodes an entry of `errors`.
  ///
  /// The server is free in what it puts into `extensions`, so a `code` that is no text is treated as absent: it must
  /// not hide the message.
  ///
  /// - Parameter decoder: The decoder to read from.
  /// - Throws: `DecodingError` when the message is missing or the path is not one.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    message = try container.decode(String.self, forKey: .message)
    path = try container.decodeIfPresent([PathElement].self, forKey: .path)
    code =
      if let extensions = try? container.nestedContainer(keyedBy: ExtensionKeys.self, forKey: .extensions) {
        try? extensions.decode(String.self, forKey: .code)
      } else {
        nil
      }
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
