import Foundation
import Testing

@testable import GraphQLClient

struct GraphQLReplyTests {
  private struct Payload: Decodable, Equatable {
    var a: Int
  }

  private static func reply(_ json: String) throws -> GraphQLReply<Payload> {
    try GraphQLReply.decode(Data(json.utf8))
  }

  /// Returns the result of decoding the `data` member, as text.
  private static func dataDescription(_ json: String) throws -> String {
    switch try reply(json).data {
    case .missing: "missing"
    case .null: "null"
    case .payload(let payload): "payload \(payload.a)"
    case .mismatch(let reason): "mismatch: \(reason)"
    }
  }

  // MARK: - Data

  @Test(arguments: [
    #"{"data":{"a":1}}"#, #"{"data":{"a":1},"errors":null}"#, #"{"data":{"a":1},"errors":[]}"#,
    #"{"extensions":{"x":1},"data":{"b":2,"a":1}}"#, " \n{\"data\":{\"a\":1}}\n",
  ])
  func `Data without errors is the payload`(json: String) throws {
    #expect(try Self.dataDescription(json) == "payload 1")
    #expect(try Self.reply(json).errors == [])
  }

  @Test(arguments: [
    ("{}", "missing", false), (#"{"message":"m"}"#, "missing", false), (#"{"errors":null}"#, "missing", true),
    (#"{"errors":[]}"#, "missing", true), (#"{"data":null}"#, "null", true),
    (#"{"data":null,"errors":[]}"#, "null", true), (#"{"extensions":{}}"#, "missing", false),
  ])
  func `Null data differs from missing data, and a member 'data' or 'errors' identifies a GraphQL reply`(
    json: String, data: String, isGraphQL: Bool
  ) throws {
    #expect(try Self.dataDescription(json) == data)
    #expect(try Self.reply(json).isGraphQL == isGraphQL)
    #expect(try Self.reply(json).errors == [])
  }

  @Test(arguments: [
    (#"{"errors":[{"message":"m"}]}"#, "missing"), (#"{"data":null,"errors":[{"message":"m"}]}"#, "null"),
    (#"{"data":{"a":1},"errors":[{"message":"m"}]}"#, "payload 1"),
  ])
  func `Errors are kept with and without data`(json: String, data: String) throws {
    #expect(try Self.reply(json).errors == [GraphQLError(message: "m")])
    #expect(try Self.dataDescription(json) == data)
    #expect(try Self.reply(json).isGraphQL)
  }

  @Test(arguments: [
    (#"{"data":{"a":"text"}}"#, " at data.a"), (#"{"data":{}}"#, "“a” is missing at data"),
    (#"{"data":{"a":null}}"#, " at data.a"), (#"{"data":[]}"#, " at data"),
  ])
  func `Data of the wrong shape is a mismatch whose reason contains the path`(
    json: String, reasonSuffix: String
  ) throws {
    let description = try Self.dataDescription(json)
    #expect(description.hasPrefix("mismatch: "))
    #expect(description.hasSuffix(reasonSuffix), "\(description)")
  }

  @Test func `Data of the wrong shape does not hide the errors`() throws {
    let json = #"{"data":{"a":null},"errors":[{"message":"m"}]}"#
    #expect(try Self.dataDescription(json).hasPrefix("mismatch: "))
    #expect(try Self.reply(json).errors == [GraphQLError(message: "m")])
  }

  // MARK: - Errors

  @Test func `An error carries its path, its code and its extensions`() throws {
    let json = """
      {"errors": [
        {"message": "m", "path": ["a", 0, "b"], "locations": [{"line": 1, "column": 2}], "extensions": {"code": "C"}},
        {"message": "n", "path": null, "extensions": {"code": 7}},
        {"message": "o", "extensions": []},
        {"message": "p", "path": [], "extensions": null}
      ]}
      """
    #expect(
      try Self.reply(json).errors == [
        GraphQLError(
          message: "m", path: [.field("a"), .index(0), .field("b")], code: "C", extensions: ["code": .string("C")]),
        GraphQLError(message: "n", extensions: ["code": .integer(7)]),
        GraphQLError(message: "o"),
        GraphQLError(message: "p", path: []),
      ])
  }

  @Test func `The first 100 errors are kept, and further entries are not decoded`() throws {
    let entries = (1...100).map { #"{"message":"m\#($0)"}"# }
    let expectedErrors = (1...100).map { GraphQLError(message: "m\($0)") }
    func keptErrors(_ entries: [String]) throws -> [GraphQLError] {
      try Self.reply(#"{"data":{"a":1},"errors":[\#(entries.joined(separator: ","))]}"#).errors
    }
    #expect(try keptErrors(entries) == expectedErrors)
    #expect(try keptErrors(entries + [#"{"message":"m101"}"#]) == expectedErrors)
    #expect(try keptErrors(entries + ["7", "{}"]) == expectedErrors)
    // The data after the errors is decoded, although the last entry of the errors isn't.
    let json = #"{"errors":[\#((entries + ["7"]).joined(separator: ","))],"data":{"a":1}}"#
    #expect(try Self.dataDescription(json) == "payload 1")
  }

  @Test func `An invalid entry of an errors array does not hide the valid ones`() throws {
    let errors = try Self.reply(#"{"errors":[7,{"message":"m"},{"message":null},{"message":"n"}]}"#).errors
    #expect(errors == [GraphQLError(message: "m"), GraphQLError(message: "n")])
  }

  @Test(arguments: [#"[{}]"#, #"[7,{"message":null}]"#, #""none""#, #"{"message":"m"}"#, "7"])
  func `Invalid errors do not hide complete data, and are reported`(errors: String) throws {
    for json in [#"{"data":{"a":1},"errors":\#(errors)}"#, #"{"errors":\#(errors),"data":{"a":1}}"#] {
      #expect(try Self.dataDescription(json) == "payload 1")
      let messages = try Self.reply(json).errors.map(\.message)
      #expect(messages.count == 1)
      #expect(messages.first?.hasPrefix("The errors of the reply are invalid: ") == true)
      #expect(messages.first?.contains(" at errors") == true)
    }
  }

  @Test(arguments: ["", #","data":null"#, #","data":{"a":1}"#])
  func `An error without a message counts if it has a code`(data: String) throws {
    let entries = #"{"extensions":{"code":"C"},"path":["a"]},{"errorType":"D"},{"message":7,"type":"E"},{"path":["b"]}"#
    let errors = try Self.reply(#"{"errors":[\#(entries)]\#(data)}"#).errors
    #expect(errors.map(\.code) == ["C", "D", "E"])
    #expect(errors.map(\.path) == [[.field("a")], nil, nil])
    #expect(Set(errors.map(\.message)) == ["The server sent no message."])
  }

  // MARK: - Invalid replies

  @Test func `A reply in an encoding other than UTF-8 is an error`() throws {
    for encoding in [String.Encoding.utf16, .utf16LittleEndian, .utf32BigEndian] {
      let body = try #require(#"{"data":{"a":1}}"#.data(using: encoding))
      #expect(throws: DecodingError.self) { try GraphQLReply<Payload>.decode(body) }
    }
  }

  @Test(arguments: [
    (#"{"errors":[{}]}"#, "“message” is missing at errors.0"),
    (#"{"errors":[{},{"message":null}]}"#, "“message” is missing at errors.0"),
    (#"{"errors":"none"}"#, " at errors"),
    ("<html>", "not valid JSON"),
    ("", "not valid JSON"),
    (#"{"data":{"a":1}"#, "not valid JSON"),
    (#"{"data":{"a":1}} x"#, "not valid JSON"),
  ])
  func `The error for an invalid reply contains the path, or says that the reply is not valid JSON`(
    json: String, reasonSuffix: String
  ) {
    let error = #expect(throws: DecodingError.self) { try Self.reply(json) }
    #expect(error.map(CodingFailure.reason(of:))?.hasSuffix(reasonSuffix) == true)
  }

  @Test(arguments: ["[]", "1", "true", #""text""#])
  func `JSON that is not an object is a type mismatch at the root`(json: String) {
    let error = #expect(throws: DecodingError.self) { try Self.reply(json) }
    guard case .typeMismatch(_, let context) = error else {
      Issue.record("expected a type mismatch, got \(String(describing: error))")
      return
    }
    #expect(context.codingPath.isEmpty)
  }

  @Test(arguments: [#"{"data":"#, #"{"extensions":"#, #"{"errors":[{"extensions":"#, ""])
  func `A reply that is nested extremely deeply is an error`(beginning: String) {
    #expect(throws: DecodingError.self) { try Self.reply(beginning + String(repeating: "[", count: 100_000)) }
    #expect(throws: DecodingError.self) {
      try Self.reply(beginning + String(repeating: #"{"a":"#, count: 100_000))
    }
  }

  // MARK: - Shape

  // `GraphQLShape` checks a response whose sender is uncertain, so it requires more than `isGraphQL`: without data, the
  // first error must have a message.

  @Test(arguments: [
    #"{"data":{"a":1}}"#, #"{"data":null}"#, #"{"data":[]}"#, #"{"errors":[{"message":"m"}]}"#,
    #"{"errors":[{"message":"m","path":7}, 7]}"#, #"{"data":null,"errors":"none"}"#,
  ])
  func `An object with data, or whose first error has a message, is shaped like a response`(json: String) {
    #expect(GraphQLShape.matches(Data(json.utf8)))
  }

  @Test(arguments: [
    "", "{}", "[]", "null", "7", "<html>", #"{"errors":[]}"#, #"{"errors":null}"#, #"{"errors":["m"]}"#,
    #"{"errors":[{"message":7}]}"#, #"{"errors":{"message":"m"}}"#, #"{"message":"m"}"#, #"{"data":1"#,
  ])
  func `Only an object with data, or whose first error has a message, is shaped like a response`(json: String) {
    #expect(!GraphQLShape.matches(Data(json.utf8)))
  }
}
