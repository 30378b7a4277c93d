import Foundation
import Testing

@testable import GraphQLClient

struct JSONValueTests {
  private static func value(_ json: String) throws -> JSONValue {
    try JSONDecoder().decode(JSONValue.self, from: Data(json.utf8))
  }

  private static func reply(_ json: String) throws -> GraphQLReply<[String: Int]> {
    try GraphQLReply.decode(Data(json.utf8))
  }

  // MARK: - Kinds

  @Test(arguments: [
    ("null", JSONValue.null), ("true", .bool(true)), ("false", .bool(false)), ("0", .integer(0)), ("1", .integer(1)),
    ("-7", .integer(-7)), ("1.0", .integer(1)), ("1e3", .integer(1000)), ("1.5", .number(1.5)),
    ("-0.25", .number(-0.25)), ("9007199254740993", .integer(9_007_199_254_740_993)),
    ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
    ("9223372036854775808", .number(9_223_372_036_854_775_808)),
    ("-9223372036854775809", .number(-9_223_372_036_854_775_808)),
    ("18446744073709551615", .number(18_446_744_073_709_551_616)), ("1e300", .number(1e300)),
    (#""""#, .string("")), (#""没有\u001b""#, .string("没有\u{1B}")), (#""1""#, .string("1")), ("[]", .array([])),
    ("{}", .object([:])),
  ])
  func `A value of each kind is decoded as that kind`(json: String, expected: JSONValue) throws {
    #expect(try Self.value(json) == expected)
  }

  @Test func `Lists and objects keep their contents`() throws {
    #expect(
      try Self.value(#"{"a":[1,"b",null,[true]],"c":{"d":{}},"":2.5}"#)
        == .object([
          "a": .array([.integer(1), .string("b"), .null, .array([.bool(true)])]),
          "c": .object(["d": .object([:])]),
          "": .number(2.5),
        ]))
  }

  @Test func `If several members have the same name, one of them is kept`() throws {
    let value = try Self.value(#"{"a":1,"a":2}"#)
    #expect([.object(["a": .integer(1)]), .object(["a": .integer(2)])].contains(value))
  }

  @Test(arguments: ["", "nul", "[1", #""\ud800""#, "1e400"])
  func `Invalid JSON, or a number out of range, is an error`(json: String) {
    #expect(throws: DecodingError.self) { try Self.value(json) }
  }

  @Test func `Two values are equal if and only if their kinds and contents are equal`() {
    let values: [JSONValue] = [
      .null, .bool(false), .bool(true), .integer(0), .integer(1), .number(0), .number(1), .string(""), .string("0"),
      .array([]), .array([.null]), .object([:]), .object(["a": .null]),
    ]
    #expect(Set(values).count == values.count)
    // Each value is equal only to itself.
    for (index, value) in values.enumerated() {
      #expect(values.map { $0 == value } == values.indices.map { $0 == index })
    }
    #expect(JSONValue.object(["a": .integer(1), "b": .null]) == .object(["b": .null, "a": .integer(1)]))
  }

  @Test func `Only a string has text`() {
    #expect(JSONValue.string("a\u{1B}").string == "a\u{1B}")
    let others: [JSONValue] = [.null, .bool(true), .integer(1), .number(1.5), .array([.string("a")]), .object([:])]
    #expect(others.map(\.string) == others.map { _ in nil })
  }

  // MARK: - Limits

  private static func nestedLists(depth: Int) -> String {
    String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
  }

  @Test func `A value may be nested in at most 32 others`() throws {
    var expected = JSONValue.array([])
    for _ in 0..<32 { expected = .array([expected]) }
    #expect(try Self.value(Self.nestedLists(depth: 33)) == expected)
    let error = #expect(throws: DecodingError.self) { try Self.value(Self.nestedLists(depth: 34)) }
    guard case .dataCorrupted(let context) = error else {
      Issue.record("expected corrupted data, got \(String(describing: error))")
      return
    }
    #expect(context.codingPath.count == 33)
  }

  @Test func `An object that is nested too deeply is an error`() throws {
    func nestedObjects(depth: Int) -> String {
      String(repeating: #"{"a":"#, count: depth) + "1" + String(repeating: "}", count: depth)
    }
    #expect(throws: Never.self) { try Self.value(nestedObjects(depth: 32)) }
    #expect(throws: DecodingError.self) { try Self.value(nestedObjects(depth: 33)) }
  }

  @Test func `Extensions that are nested too deeply are dropped, and the rest of the reply is kept`() throws {
    func reply(depth: Int) throws -> GraphQLReply<[String: Int]> {
      try Self.reply(
        """
        {"data":{"a":1},"extensions":{"x":\(Self.nestedLists(depth: depth)),"y":1},
        "errors":[{"message":"m","path":["a"],"extensions":{"x":\(Self.nestedLists(depth: depth)),"code":"C"}}]}
        """)
    }
    // The response's extensions add two enclosing containers to the lists, and an error's extensions add four.
    // Therefore, the limit of 33 nested lists becomes 31 in the response's extensions, and 29 in an error's.
    #expect(try reply(depth: 29).extensions["y"] == .integer(1))
    #expect(try reply(depth: 29).errors.map(\.code) == ["C"])
    #expect(try reply(depth: 31).extensions["y"] == .integer(1))
    for depth in [32, 100, 500] {
      let replyOverLimit = try reply(depth: depth)
      #expect(replyOverLimit.extensions == [:])
      // The code counts nevertheless.
      #expect(replyOverLimit.errors == [GraphQLError(message: "m", path: [.field("a")], code: "C")])
      #expect(replyOverLimit.payload == ["a": 1])
    }
  }

  /// Returns a JSON object that counts as `valueCount` values: a list under the name x, and its elements.
  private static func extensionsJSON(valueCount: Int) -> String {
    #"{"x":[\#(Array(repeating: "0", count: valueCount - 1).joined(separator: ","))]}"#
  }

  /// Returns the decoded members of the object that `extensionsJSON(valueCount:)` returns.
  private static func expectedExtensions(valueCount: Int) -> [String: JSONValue] {
    ["x": .array(Array(repeating: .integer(0), count: valueCount - 1))]
  }

  @Test func `A reply keeps at most 1,000 values of extensions`() throws {
    let replyAtLimit = try Self.reply(#"{"data":{"a":1},"extensions":\#(Self.extensionsJSON(valueCount: 1000))}"#)
    #expect(replyAtLimit.extensions == Self.expectedExtensions(valueCount: 1000))
    #expect(replyAtLimit.payload == ["a": 1])
    let replyOverLimit = try Self.reply(#"{"data":{"a":1},"extensions":\#(Self.extensionsJSON(valueCount: 1001))}"#)
    #expect(replyOverLimit.extensions == [:])
    #expect(replyOverLimit.payload == ["a": 1])
  }

  @Test func `The limit counts each member of the extensions`() throws {
    func decodedExtensions(memberCount: Int) throws -> [String: JSONValue] {
      let members = (0..<memberCount).map { #""x\#($0)":0"# }.joined(separator: ",")
      return try Self.reply(#"{"extensions":{\#(members)}}"#).extensions
    }
    #expect(
      try decodedExtensions(memberCount: 1000)
        == Dictionary(uniqueKeysWithValues: (0..<1000).map { ("x\($0)", .integer(0)) }))
    #expect(try decodedExtensions(memberCount: 1001) == [:])
  }

  @Test func `Too many values in an error's extensions do not affect its message or the data`() throws {
    let extensions = Self.extensionsJSON(valueCount: 1001)
    let json = """
      {"data":{"a":1},"errors":[{"message":"m","path":["a"],"extensions":\(extensions)},{"message":"n"}]}
      """
    let reply = try Self.reply(json)
    #expect(reply.errors == [GraphQLError(message: "m", path: [.field("a")]), GraphQLError(message: "n")])
    #expect(reply.payload == ["a": 1])
  }

  @Test func `All extensions of a reply share the limit`() throws {
    func reply(valueCount: Int) throws -> GraphQLReply<[String: Int]> {
      try Self.reply(
        """
        {"extensions":\(Self.extensionsJSON(valueCount: valueCount)),"data":{"a":1},
        "errors":[{"message":"m","extensions":\(Self.extensionsJSON(valueCount: 400))},
        {"message":"n","extensions":\(Self.extensionsJSON(valueCount: 500))}]}
        """)
    }
    let errors = [
      GraphQLError(message: "m", extensions: Self.expectedExtensions(valueCount: 400)),
      GraphQLError(message: "n", extensions: Self.expectedExtensions(valueCount: 500)),
    ]
    // The errors are decoded first, so they leave 100 of the 1,000 values to the response's own extensions.
    #expect(try reply(valueCount: 100).errors == errors)
    #expect(try reply(valueCount: 100).extensions == Self.expectedExtensions(valueCount: 100))
    #expect(try reply(valueCount: 101).errors == errors)
    #expect(try reply(valueCount: 101).extensions == [:])
    #expect(try reply(valueCount: 101).payload == ["a": 1])
  }

  @Test func `Hundreds of thousands of small values in extensions are dropped, and the reply is kept`() throws {
    let smallValues = Array(repeating: "[[],{}]", count: 200_000).joined(separator: ",")
    let reply = try Self.reply(#"{"data":{"a":1},"errors":[{"message":"m","extensions":{"x":[\#(smallValues)]}}]}"#)
    #expect(reply.errors == [GraphQLError(message: "m")])
    #expect(reply.payload == ["a": 1])
  }

  @Test func `Each reply has its own limit`() throws {
    for _ in 0..<3 {
      let reply = try Self.reply(#"{"extensions":\#(Self.extensionsJSON(valueCount: 1000))}"#)
      #expect(reply.extensions == Self.expectedExtensions(valueCount: 1000))
    }
  }

  @Test func `Outside of a reply, the number of values is unlimited`() throws {
    #expect(
      try Self.value(Self.extensionsJSON(valueCount: 5000)) == .object(Self.expectedExtensions(valueCount: 5000)))
  }

  // MARK: - Extensions

  @Test(arguments: ["null", "[]", "[1]", "1", "true", #""text""#])
  func `Extensions that are not an object are dropped`(json: String) throws {
    let reply = try Self.reply(
      #"{"extensions":\#(json),"data":{"a":1},"errors":[{"message":"m","extensions":\#(json)}]}"#)
    #expect(reply.extensions == [:])
    #expect(reply.errors == [GraphQLError(message: "m")])
    #expect(reply.payload == ["a": 1])
  }

  @Test func `Extensions with a number out of range are dropped`() throws {
    let reply = try Self.reply(#"{"extensions":{"a":1e400,"b":1},"data":{"a":1}}"#)
    #expect(reply.extensions == [:])
    #expect(reply.payload == ["a": 1])
  }

  @Test func `Extensions keep text as the server sent it`() throws {
    let reply = try Self.reply(#"{"data":{},"extensions":{"a":"\u001b[2J\u202e"}}"#)
    #expect(reply.extensions == ["a": .string("\u{1B}[2J\u{202E}")])
  }
}

extension GraphQLReply {
  fileprivate var payload: Payload? {
    if case .payload(let payload) = data { payload } else { nil }
  }
}
