internal import Multicast

/// A JSON value of any shape, such as a value in `extensions`.
public enum JSONValue: Hashable, Sendable {
  /// `null`.
  case null
  /// `true` or `false`.
  case bool(Bool)
  /// A whole number in the range of `Int64`.
  case integer(Int64)
  /// Any other number.
  case number(Double)
  /// Text, exactly as the server sent it.
  ///
  /// Sanitize it before you display it.
  case string(String)
  /// A list.
  case array([JSONValue])
  /// An object.
  ///
  /// If several members have the same name, only one is kept, and it is unspecified which one.
  case object([String: JSONValue])

  /// The text of a string value; `nil` for any other value.
  public var string: String? {
    if case .string(let text) = self { text } else { nil }
  }
}

extension JSONValue: Decodable {
  /// The maximum length of the path from the root of the decoded document to a value.
  static let maximumDepth = 32
  /// The maximum number of values that are decoded from one reply, if its decoder has a ``Budget``.
  static let maximumCount = 1000

  /// The number of values that may still be decoded from one reply.
  ///
  /// Decoding a value takes several attempts. Without a limit, a reply full of small values would keep a thread busy
  /// for minutes.
  final class Budget: Sendable {
    static let key = CodingUserInfoKey(rawValue: "GraphQLClient.JSONValue.Budget")!

    private let remaining = Lock(maximumCount)

    /// Takes one value from the budget; returns `false` if the budget is exhausted.
    func spend() -> Bool {
      remaining.withLock { remaining in
        guard remaining > 0 else { return false }
        remaining -= 1
        return true
      }
    }
  }

  /// Decodes a value of any shape.
  ///
  /// - Parameter decoder: The decoder to read from.
  /// - Throws: `DecodingError.dataCorrupted` if a value is more than 32 levels below the root of the document, or if an
  ///   ``APISession`` decodes more than 1,000 values of this type from one reply.
  /// - Complexity: O(*n*), where *n* is the number of values.
  public init(from decoder: any Decoder) throws {
    let budget = decoder.userInfo[Budget.key] as? Budget
    guard decoder.codingPath.count <= Self.maximumDepth, budget?.spend() ?? true else {
      let reason = "There are too many values, or they are nested too deeply"
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: reason))
    }
    // A failed attempt only means that the value is of another kind. Only the failure of the last attempt is thrown.
    if let keyed = try? decoder.container(keyedBy: Key.self) {
      var members: [String: JSONValue] = [:]
      for key in keyed.allKeys { members[key.stringValue] = try keyed.decode(JSONValue.self, forKey: key) }
      self = .object(members)
      return
    }
    if var list = try? decoder.unkeyedContainer() {
      var elements: [JSONValue] = []
      while !list.isAtEnd { elements.append(try list.decode(JSONValue.self)) }
      self = .array(elements)
      return
    }
    let single = try decoder.singleValueContainer()
    if single.decodeNil() {
      self = .null
    } else if let value = try? single.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? single.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? single.decode(Double.self) {
      self = .number(value)
    } else {
      self = .string(try single.decode(String.self))
    }
  }

  private struct Key: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }
}
