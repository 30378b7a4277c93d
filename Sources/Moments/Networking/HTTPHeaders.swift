/// HTTP headers with names that ignore case, each with one value; of two under the same name the later wins.
struct HTTPHeaders: Equatable, Sendable {
  /// A header as it is sent.
  struct Field: Equatable, Sendable {
    var name: String
    var value: String
  }

  private var fieldsByLowercasedName: [String: Field] = [:]

  /// The headers, sorted by name.
  var fields: [Field] {
    fieldsByLowercasedName.sorted { $0.key < $1.key }.map(\.value)
  }

  init(_ headers: [String: String] = [:]) {
    merge(headers)
  }

  /// The value under `name`, whatever its case.
  subscript(name: String) -> String? {
    fieldsByLowercasedName[name.lowercased()]?.value
  }

  /// Adds `headers`, which win over those already here.
  ///
  /// If the names of `headers` differ in nothing but case, the one sorted last wins, so that the result never depends
  /// on the order of a dictionary.
  mutating func merge(_ headers: [String: String]) {
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
      fieldsByLowercasedName[name.lowercased()] = Field(name: name, value: value)
    }
  }

  func merging(_ headers: [String: String]) -> HTTPHeaders {
    var merged = self
    merged.merge(headers)
    return merged
  }

  /// The name of the first header that would break the request, or smuggle a second header into it, if sent.
  var firstInvalidName: String? {
    fields.first { !$0.isValid }?.name
  }
}

extension HTTPHeaders.Field {
  /// Whether the name is a token and the value a field value in the sense of RFC 9110, section 5.
  fileprivate var isValid: Bool {
    !name.isEmpty && name.utf8.allSatisfy(\.isTokenCharacter)
      && value.utf8.allSatisfy { $0 == UInt8(ascii: "\t") || ($0 >= 0x20 && $0 != 0x7F) }
  }
}

extension UInt8 {
  fileprivate var isTokenCharacter: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default:
      "!#$%&'*+-.^_`|~".utf8.contains(self)
    }
  }
}
