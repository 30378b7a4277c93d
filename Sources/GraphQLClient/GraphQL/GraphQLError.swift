/// An entry of the `errors` list of a GraphQL response.
///
/// Its text comes from the server. Creating or decoding an error therefore sanitizes the ``message``, the ``code`` and
/// the names in ``path``: they occupy one line and contain no control characters. A message has at most
/// ``APISessionError/excerptLength`` characters, and a code or a name at most 128.
public struct GraphQLError: Error, Hashable, Sendable {
  /// An element of the path from the root of the response to the field that failed.
  public enum PathElement: Hashable, Sendable {
    /// A field, by its name or alias in the response.
    case field(String)
    /// An element of a list, counted from 0.
    case index(Int)
  }

  /// The maximum number of elements of a path; a longer path is truncated.
  static let maximumPathLength = 32
  /// The maximum number of characters of a path in a description.
  private static let maximumPathWidth = 256

  /// The server's description of the error.
  public let message: String
  /// The path of the field that failed, if the server reports it.
  ///
  /// Errors that concern the request as a whole have no path.
  public let path: [PathElement]?
  /// The server's machine-readable name for the error, if it has one that is text.
  ///
  /// Most servers send it as `extensions.code`. If there is none, the name is `extensions.errorType` (Netflix DGS),
  /// `extensions.classification` (graphql-java, Spring for GraphQL), `errorType` (AWS AppSync) or `type` (GitHub), in
  /// this order. ``GraphQLErrorCodes`` says what a name means.
  public let code: String?
  /// Additional data about the error, as the server sent it.
  ///
  /// Empty if the server sent none, or if the data is invalid or exceeds the limits described at ``GraphQLResponse``.
  public let extensions: [String: JSONValue]

  /// Creates an error like one that a server reports.
  ///
  /// - Parameters:
  ///   - message: The description of the error.
  ///   - path: The path of the field that failed.
  ///   - code: The machine-readable name. The default, `nil`, stands for the text under `code`, `errorType` or
  ///     `classification` in `extensions`.
  ///   - extensions: Additional data about the error.
  public init(
    message: String, path: [PathElement]? = nil, code: String? = nil, extensions: [String: JSONValue] = [:]
  ) {
    self.message = ServerText.line(message)
    self.path = path.map { $0.prefix(Self.maximumPathLength).map(\.sanitized) }
    self.code = (code ?? Self.code(in: extensions)).map(ServerText.name)
    self.extensions = extensions
  }
}

extension GraphQLError: CustomStringConvertible {
  /// The message, followed by the path and the code if the error has them.
  public var description: String {
    let joinedPath = path.map { $0.map(\.description).joined(separator: ".") }
    let notes = [
      joinedPath.map { "at \(ServerText.line($0, maximumLength: Self.maximumPathWidth))" },
      code.map { "code \($0)" },
    ].compactMap(\.self)
    return notes.isEmpty ? message : "\(message) (\(notes.joined(separator: ", ")))"
  }
}

extension GraphQLError.PathElement: CustomStringConvertible {
  /// The name of the field, or the index in decimal digits.
  public var description: String {
    switch self {
    case .field(let name): name
    case .index(let index): String(index)
    }
  }

  fileprivate var sanitized: Self {
    switch self {
    case .field(let name): .field(ServerText.name(name))
    case .index: self
    }
  }
}

extension GraphQLError: Decodable {
  private enum CodingKeys: CodingKey {
    case message, path, extensions, errorType, type
  }

  /// Decodes an entry of `errors`.
  ///
  /// An invalid path, and extensions that are invalid or exceed the limits, are ignored, because they must not hide the
  /// message.
  ///
  /// - Parameter decoder: The decoder to read from.
  /// - Throws: `DecodingError` if the entry isn't an object, or if its message is missing or isn't text.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      message: try container.decode(String.self, forKey: .message), path: Self.path(in: container),
      code: Self.code(in: container), extensions: container.extensions(forKey: .extensions))
  }
}

extension GraphQLError {
  /// Decodes an entry of `errors` that has no message, but a code; returns `nil` if it has no code.
  ///
  /// The code says what the error means, so the error counts although the specification requires a message.
  init?(withoutMessage decoder: any Decoder) {
    // An entry that isn't an object has no code.
    guard let container = try? decoder.container(keyedBy: CodingKeys.self) else { return nil }
    guard let code = Self.code(in: container) else { return nil }
    self.init(
      message: "The server sent no message.", path: Self.path(in: container), code: code,
      extensions: container.extensions(forKey: .extensions))
  }

  /// Returns the name of an error in its `extensions`; `nil` if there is none that is text.
  private static func code(in extensions: [String: JSONValue]) -> String? {
    ["code", "errorType", "classification"].lazy.compactMap { extensions[$0]?.string }.first { !$0.isEmpty }
  }

  /// The names of the members of `extensions` that may have the name of an error.
  private enum NameKeys: CodingKey {
    case code, errorType, classification
  }

  /// Returns the name of an error; `nil` if there is none that is text.
  ///
  /// It counts even if the `extensions` have so many values that they are ignored, as those with a stack trace.
  private static func code(in container: KeyedDecodingContainer<CodingKeys>) -> String? {
    // Extensions that are not an object have no name.
    let extensions = try? container.nestedContainer(keyedBy: NameKeys.self, forKey: .extensions)
    return [
      extensions?.text(forKey: .code), extensions?.text(forKey: .errorType), extensions?.text(forKey: .classification),
      container.text(forKey: .errorType), container.text(forKey: .type),
    ].compactMap(\.self).first
  }

  /// Returns the path, truncated to the maximum length; `nil` if it is missing or invalid.
  ///
  /// A valid path is a list of names and integers. Elements beyond the maximum length aren't checked.
  private static func path(in container: KeyedDecodingContainer<CodingKeys>) -> [PathElement]? {
    guard var list = try? container.nestedUnkeyedContainer(forKey: .path) else { return nil }
    var path: [PathElement] = []
    while !list.isAtEnd, path.count < maximumPathLength {
      // An invalid path doesn't invalidate the error.
      guard let element = try? list.decode(PathElement.self) else { return nil }
      path.append(element)
    }
    return path
  }
}

extension GraphQLError.PathElement: Decodable {
  /// Decodes an element of a path: an integer is an index, text is a field.
  ///
  /// - Parameter decoder: The decoder to read from.
  /// - Throws: `DecodingError` if the element is neither an integer nor text.
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
  /// Returns the text of a member; `nil` if it is missing, empty or isn't text.
  fileprivate func text(forKey key: Key) -> String? {
    // A name that isn't text doesn't invalidate the error.
    (try? decodeIfPresent(String.self, forKey: key)).flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Returns the members of an `extensions` object; none if there is no such object, or if it exceeds the limits.
  func extensions(forKey key: Key) -> [String: JSONValue] {
    // Invalid extensions don't invalidate the rest of the response.
    (try? decodeIfPresent([String: JSONValue].self, forKey: key)) ?? [:]
  }
}
