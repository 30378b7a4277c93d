/// HTTP header fields, with names that ignore case and one value for each name.
///
/// ## Behavior
///
/// - Setting a field replaces the value of the same name and takes over the new spelling.
/// - ``add(_:for:)`` keeps the value that is there and appends the new one behind a comma, as RFC 9110, section 5.3,
///   combines fields that a message repeats.
public struct HTTPHeaders: Hashable, Sendable {
  /// A header field as it is sent.
  public struct Field: Hashable, Sendable {
    /// The name in the spelling it was given in.
    public var name: String
    /// The value, without surrounding white space.
    public var value: String

    /// Creates a field.
    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  private var fieldsByLowercasedName: [String: Field] = [:]

  /// The fields, sorted by name.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of fields.
  public var fields: [Field] {
    fieldsByLowercasedName.sorted { $0.key < $1.key }.map(\.value)
  }

  /// Creates header fields from names and values.
  ///
  /// Of two names that differ only in case, the one sorted last wins, so the result never depends on the order of a
  /// dictionary.
  public init(_ headers: [String: String] = [:]) {
    merge(headers)
  }

  /// The value under `name`, whatever its case; `nil` removes the field.
  public subscript(name: String) -> String? {
    get { fieldsByLowercasedName[name.lowercased()]?.value }
    set { fieldsByLowercasedName[name.lowercased()] = newValue.map { Field(name: name, value: $0) } }
  }

  /// Appends a value to the field of this name, behind a comma and a space if there is one already.
  ///
  /// - Complexity: O(*m*) on average, where *m* is the length of the name and the value.
  public mutating func add(_ value: String, for name: String) {
    let key = name.lowercased()
    if fieldsByLowercasedName[key] == nil {
      fieldsByLowercasedName[key] = Field(name: name, value: value)
    } else {
      // In place, since a server may repeat a field as often as it likes.
      fieldsByLowercasedName[key]?.value.append(", ")
      fieldsByLowercasedName[key]?.value.append(value)
    }
  }

  /// Sets the fields of `headers`, which replace those of the same name.
  mutating func merge(_ headers: [String: String]) {
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) { self[name] = value }
  }

  /// Returns these fields with those of `headers` set, which replace those of the same name.
  func merging(_ headers: [String: String]) -> HTTPHeaders {
    var merged = self
    merged.merge(headers)
    return merged
  }

  /// The name of the first field that would break a request, or smuggle a second field into it.
  var firstInvalidName: String? {
    fields.first { !$0.isValid }?.name
  }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
  /// Creates header fields from a literal; of two elements under the same name the later wins.
  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { self[name] = value }
  }
}

extension HTTPHeaders.Field {
  /// Whether the name is a token and the value a field value in the sense of RFC 9110, section 5.
  var isValid: Bool {
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
