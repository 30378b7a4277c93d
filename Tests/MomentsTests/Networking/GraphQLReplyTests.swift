import Foundation
import Testing

@testable import Moments

struct GraphQLReplyTests {
  private struct Payload: Codable, Equatable {
    var a: Int
  }

  private static func payload(_ json: String) throws(APISessionError) -> Payload {
    try GraphQLReply<Payload>.payload(of: Data(json.utf8))
  }

  @Test(arguments: [
    #"{"data":{"a":1}}"#, #"{"data":{"a":1},"errors":null}"#, #"{"data":{"a":1},"errors":[]}"#,
    #"{"extensions":{"x":1},"data":{"b":2,"a":1}}"#,
  ])
  func `Data without errors is the payload`(json: String) throws {
    #expect(try Self.payload(json) == Payload(a: 1))
  }

  @Test(arguments: ["", "{}", #"{"data":null}"#, #"{"data":null,"errors":[]}"#])
  func `Neither data nor errors is empty`(json: String) {
    #expect(throws: APISessionError.emptyReply) { try Self.payload(json) }
  }

  @Test(arguments: [
    #"{"errors":[{"message":"m"}]}"#, #"{"data":null,"errors":[{"message":"m"}]}"#,
    #"{"data":{"a":1},"errors":[{"message":"m"}]}"#, #"{"data":{"a":null},"errors":[{"message":"m"}]}"#,
  ])
  func `Errors win over data`(json: String) {
    #expect(throws: APISessionError.graphQL([GraphQLError(message: "m")])) { try Self.payload(json) }
  }

  @Test func `An error carries its path and its code`() {
    let json = """
      {"errors": [
        {"message": "m", "path": ["a", 0, "b"], "locations": [{"line": 1, "column": 2}], "extensions": {"code": "C"}},
        {"message": "n", "path": null, "extensions": {"code": 7}},
        {"message": "o", "extensions": []}
      ]}
      """
    #expect(
      throws: APISessionError.graphQL([
        GraphQLError(message: "m", path: [.field("a"), .index(0), .field("b")], code: "C"),
        GraphQLError(message: "n"),
        GraphQLError(message: "o"),
      ])
    ) {
      try Self.payload(json)
    }
  }

  @Test(arguments: [
    (#"{"data":{"a":"text"}}"#, "at data.a"),
    (#"{"data":{}}"#, "“a” is missing at data"),
    (#"{"data":{"a":null}}"#, "at data.a"),
    (#"{"errors":[{}]}"#, "“message” is missing at errors.0"),
    (#"{"errors":"none"}"#, "at errors"),
    ("<html>", "not valid JSON"),
    ("[]", ""),
  ])
  func `What cannot be read is quoted, with the place`(json: String, place: String) {
    let error = #expect(throws: APISessionError.self) { try Self.payload(json) }
    guard case .undecodable(let reason, let excerpt) = error else {
      Issue.record("expected an undecodable reply, got \(String(describing: error))")
      return
    }
    #expect(reason.hasSuffix(place), "\(reason)")
    #expect(excerpt == json)
  }

  @Test func `A reply nested without end is refused, not followed`() {
    let error = #expect(throws: APISessionError.self) {
      try Self.payload(#"{"data":"# + String(repeating: "[", count: 100_000))
    }
    guard case .undecodable = error else {
      Issue.record("expected an undecodable reply, got \(String(describing: error))")
      return
    }
  }
}
