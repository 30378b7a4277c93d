/// The media type of a response, reduced to the distinctions that GraphQL over HTTP makes.
enum MediaType: Equatable {
  /// `application/graphql-response+json`, which only a GraphQL server sends, with any status.
  case graphQLResponse
  /// `application/json`, another type that ends in `+json`, or no type.
  case json
  /// Any other type, such as the HTML of a proxy.
  case other

  /// The maximum length of a type's name, in bytes; RFC 6838 allows 127 for each of its two parts.
  private static let maximumLength = 255

  /// Creates the media type of a response from its `Content-Type` field.
  ///
  /// - Parameter contentType: The value of the `Content-Type` field, with or without parameters; `nil` if the field is
  ///   missing.
  init(contentType: String?) {
    guard let contentType else {
      self = .json
      return
    }
    // The type's name, without parameters and white space. It consists of bytes, because a server can send text whose
    // characters are expensive to process.
    let bytes = contentType.utf8.prefix { $0 != UInt8(ascii: ";") }.filter { $0 != 0x20 && $0 != 0x09 }
    guard bytes.count <= Self.maximumLength, bytes.allSatisfy({ $0 < 0x80 }) else {
      self = .other
      return
    }
    let typeName = String(decoding: bytes, as: UTF8.self).lowercased()
    switch typeName {
    case "application/graphql-response+json": self = .graphQLResponse
    case "application/json", "": self = .json
    case _ where typeName.hasSuffix("+json"): self = .json
    default: self = .other
    }
  }
}
