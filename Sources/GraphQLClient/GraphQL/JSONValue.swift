internal import Multicast

/// A JSON value of any shape, such as what a server puts into `extensions`.
public enum JSONValue: Hashable, Sendable {
  /// `null`.
  case null
  /// `true` or `false`.
  case bool(Bool)
  /// A number without a fraction that fits into 64 bits.
  case integer(Int64)
  /// Any other number.
  case number(Double)
  /// Text, exactly as the server sent it. Clean it before you show it.
  case string(String)
  /// A list.
  case array([JSONValue])
  /// An object. Of members under the same name, one is kept.
  case object([String: JSONValue])

  /// The text of a string value; `nil` for every other value.
  public var string: String? {
    if case .string(let text) = self { text } else { nil }
  }
}

extension JSONValue: Decodable {
  /// The deepest nesting that is decoded.
  static let maximumDepth = 32
  /// The most values that are decoded out of one reply, where the reply has a ``Budget``.
  static let maximumCount = 1000

  /// How many values may still be decoded out of one reply.
  ///
  /// Each value costs several attempts to decode it, so a reply full of small values would keep a thread busy for
  /// minutes.
  final class Budget: Sendable {
    static let key = CodingUserInfoKey(rawValue: "GraphQLClient.JSONValue.Budget")!

    private let remaining = Lock(maximumCount)

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
  /// - Throws: `DecodingError.dataCorrupted` for a value nested more than 32 levels deep, and where a session's reply
  ///   has more than 1,000 such values.
  /// - Complexity: O(*n*), where *n* is the number of values.
  public init(from decoder: any Decoder) throws {
    let budget = decoder.userInfo[Budget.key] as? Budget
    guard decoder.codingPath.count <= Self.maximumDepth, budget?.spend() ?? true else {
      let reason = "There are too many values, or they are nested too deep"
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: reason))
    }
    // An attempt that fails says only that the value is of another kind; the last one's failure is thrown.
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
