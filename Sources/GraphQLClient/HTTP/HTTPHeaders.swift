/// HTTP header fields, with case-insensitive names and one value per name.
///
/// ## Behavior
///
/// - Setting a field replaces its value and adopts the new spelling of its name.
/// - ``add(_:for:)`` keeps the existing value and appends the new one after a comma. RFC 9110, section 5.3, combines
///   repeated fields in this way.
public struct HTTPHeaders: Hashable, Sendable {
  /// A header field in the form in which it is sent.
  public struct Field: Hashable, Sendable {
    /// The name, with its original spelling.
    public var name: String
    /// The value.
    ///
    /// White space around it has no meaning; see RFC 9110, section 5.5.
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
  /// If two names differ only in case, the last one in sorted order wins, so that the result doesn't depend on the
  /// order of the dictionary.
  public init(_ headers: [String: String] = [:]) {
    merge(headers)
  }

  /// The value of the field `name`, ignoring case.
  ///
  /// Setting `nil` removes the field.
  public subscript(name: String) -> String? {
    get { fieldsByLowercasedName[name.lowercased()]?.value }
    set { fieldsByLowercasedName[name.lowercased()] = newValue.map { Field(name: name, value: $0) } }
  }

  /// Adds a value to a field, after a comma and a space if the field already has a value.
  ///
  /// - Parameters:
  ///   - value: The value to add.
  ///   - name: The name of the field.
  /// - Complexity: O(*m*) on average, where *m* is the combined length of the name and the value.
  public mutating func add(_ value: String, for name: String) {
    let key = name.lowercased()
    if fieldsByLowercasedName[key] == nil {
      fieldsByLowercasedName[key] = Field(name: name, value: value)
    } else {
      // Appending in place avoids quadratic time when a server repeats a field many times.
      fieldsByLowercasedName[key]?.value.append(", ")
      fieldsByLowercasedName[key]?.value.append(value)
    }
  }

  /// Sets the fields of `headers`, replacing existing fields with the same names.
  mutating func merge(_ headers: [String: String]) {
    for (name, value) in headers.sorted(by: { $0.key < $1.key }) { self[name] = value }
  }

  /// Returns a copy in which the fields of `headers` are set, replacing existing fields with the same names.
  func merging(_ headers: [String: String]) -> HTTPHeaders {
    var merged = self
    merged.merge(headers)
    return merged
  }

  /// The name of the first field that would corrupt a request or inject a second field into it; `nil` if all are valid.
  var nameOfFirstInvalidField: String? {
    fields.first { !$0.isValid }?.name
  }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
  /// Creates header fields from a dictionary literal.
  ///
  /// If a name occurs twice, the later element wins.
  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { self[name] = value }
  }
}

extension HTTPHeaders.Field {
  /// Whether the name is a token and the value is a field value, as defined by RFC 9110, section 5.
  ///
  /// The value may also have white space around it.
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
