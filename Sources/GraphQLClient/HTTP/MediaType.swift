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
  /// A server and the proxy in front of it may both add the field. The combined value is then a list. It counts if all
  /// of its members are equal in this type; otherwise it is ``other``, because it is unknown which one is right.
  ///
  /// - Parameter contentType: The value of the `Content-Type` field, with or without parameters; `nil` if the field is
  ///   missing.
  /// - Complexity: O(*n*), where *n* is the length of the value.
  init(contentType: String?) {
    let members = contentType.map { Self.members(of: $0.utf8) } ?? []
    let types = members.map(Self.init(member:))
    guard let first = types.first else {
      self = .json
      return
    }
    self = types.allSatisfy { $0 == first } ? first : .other
  }

  /// Creates the media type of one member of a list, with or without parameters.
  private init(member: Substring.UTF8View) {
    // The type's name, without parameters and white space. It consists of bytes, because a server can send text whose
    // characters are expensive to process.
    let bytes = member.prefix { $0 != UInt8(ascii: ";") }.filter { $0 != 0x20 && $0 != 0x09 }
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

  /// Returns the members of a list that aren't empty, which commas outside quoted strings separate.
  private static func members(of list: String.UTF8View) -> [Substring.UTF8View] {
    var members: [Substring.UTF8View] = []
    var (start, isQuoted, isEscaped) = (list.startIndex, false, false)
    func isEmpty(_ member: Substring.UTF8View) -> Bool { member.allSatisfy { $0 == 0x20 || $0 == 0x09 } }
    for index in list.indices {
      switch list[index] {
      case _ where isEscaped: isEscaped = false
      case UInt8(ascii: "\\") where isQuoted: isEscaped = true
      case UInt8(ascii: "\""): isQuoted.toggle()
      case UInt8(ascii: ",") where !isQuoted:
        if !isEmpty(list[start..<index]) { members.append(list[start..<index]) }
        start = list.index(after: index)
      default: break
      }
    }
    if !isEmpty(list[start...]) { members.append(list[start...]) }
    return members
  }
}
