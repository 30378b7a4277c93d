import Foundation
import Testing

@testable import GraphQLClient

struct GraphQLErrorTests {
  private static let hostileText = "a\u{1B}[2Jb\u{07}c\u{202E}d\u{2028}e"
  private static let sanitizedText = "a [2Jb c d e"
  private static let longText = String(repeating: "长", count: 600)
  private static let truncatedText = String(repeating: "长", count: 511) + "…"
  /// The long text, truncated to the limit of a name, which is lower than the limit of a message.
  ///
  /// The limit of a path in a description lies between these two limits.
  private static let truncatedName = String(repeating: "长", count: 127) + "…"

  private static func decode(_ json: String) throws -> GraphQLError {
    try JSONDecoder().decode(GraphQLError.self, from: Data(json.utf8))
  }

  private static func jsonString(_ text: String) throws -> String {
    String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
  }

  // MARK: - Sanitizing

  @Test func `Creating an error sanitizes its text`() {
    for (text, message, name) in [
      (Self.hostileText, Self.sanitizedText, Self.sanitizedText),
      (Self.longText, Self.truncatedText, Self.truncatedName),
    ] {
      let error = GraphQLError(message: text, path: [.field(text), .index(7)], code: text)
      #expect(error.message == message)
      #expect(error.path == [.field(name), .index(7)])
      #expect(error.code == name)
    }
  }

  @Test func `Decoding an error sanitizes its text`() throws {
    for (text, message, name) in [
      (Self.hostileText, Self.sanitizedText, Self.sanitizedText),
      (Self.longText, Self.truncatedText, Self.truncatedName),
    ] {
      let json = try Self.jsonString(text)
      let error = try Self.decode(
        #"{"message":\#(json),"path":[\#(json),7],"extensions":{"code":\#(json),"a":\#(json)}}"#)
      #expect(error.message == message)
      #expect(error.path == [.field(name), .index(7)])
      #expect(error.code == name)
      // The extensions keep the text as the server sent it.
      #expect(error.extensions == ["code": .string(text), "a": .string(text)])
    }
  }

  @Test func `A path is truncated after 32 elements`() throws {
    func makePath(length: Int) -> [GraphQLError.PathElement] { (0..<length).map { .index($0) } }
    #expect(GraphQLError(message: "m", path: makePath(length: 32)).path == makePath(length: 32))
    #expect(GraphQLError(message: "m", path: makePath(length: 33)).path == makePath(length: 32))
    let numbers = (0..<10_000).map { "\($0)" }.joined(separator: ",")
    #expect(try Self.decode(#"{"message":"m","path":[\#(numbers)]}"#).path == makePath(length: 32))
  }

  // MARK: - Code

  @Test func `The code defaults to the text of the member 'code' in the extensions`() {
    #expect(GraphQLError(message: "m").code == nil)
    #expect(GraphQLError(message: "m", code: "A").code == "A")
    #expect(GraphQLError(message: "m", extensions: ["code": .string("B")]).code == "B")
    #expect(GraphQLError(message: "m", code: "A", extensions: ["code": .string("B")]).code == "A")
    #expect(GraphQLError(message: "m", extensions: ["code": .integer(7)]).code == nil)
    #expect(GraphQLError(message: "m", extensions: ["Code": .string("B")]).code == nil)
  }

  // MARK: - Decoding

  @Test(arguments: [
    (#"{"message":"m"}"#, GraphQLError(message: "m")),
    (#"{"message":""}"#, GraphQLError(message: "")),
    (#"{"message":"m","path":null,"extensions":null}"#, GraphQLError(message: "m")),
    (#"{"message":"m","path":[]}"#, GraphQLError(message: "m", path: [])),
    (#"{"message":"m","path":["a",0,"0"]}"#, GraphQLError(message: "m", path: [.field("a"), .index(0), .field("0")])),
    (#"{"message":"m","locations":7,"other":[]}"#, GraphQLError(message: "m")),
    (#"{"message":"m","extensions":{"a":1}}"#, GraphQLError(message: "m", extensions: ["a": .integer(1)])),
    (#"{"message":"m","extensions":"text"}"#, GraphQLError(message: "m")),
  ])
  func `An entry of an errors array is decoded if its message is text`(json: String, expected: GraphQLError) throws {
    #expect(try Self.decode(json) == expected)
  }

  @Test(arguments: [
    "{}", "[]", #""m""#, #"{"message":null}"#, #"{"message":7}"#,
  ])
  func `An entry whose message is missing or is not text is invalid`(json: String) {
    #expect(throws: DecodingError.self) { try Self.decode(json) }
  }

  @Test(arguments: [#""a""#, "[true]", "[null]", "[1.5]", #"[["a"]]"#, #"["a",true]"#])
  func `An invalid path does not hide the message`(path: String) throws {
    #expect(try Self.decode(#"{"message":"m","path":\#(path)}"#) == GraphQLError(message: "m"))
  }

  // MARK: - Description

  @Test func `The description contains the message, the path and the code`() {
    #expect(GraphQLError(message: "m").description == "m")
    #expect(GraphQLError(message: "m", path: [.field("users"), .index(3)]).description == "m (at users.3)")
    #expect(GraphQLError(message: "m", code: "C").description == "m (code C)")
    #expect(
      GraphQLError(message: "m", path: [.field("a"), .field("b")], code: "C").description == "m (at a.b, code C)")
    #expect("\(GraphQLError.PathElement.field("a")) \(GraphQLError.PathElement.index(12))" == "a 12")
  }

  @Test func `The description truncates a long path`() {
    let path = Array(repeating: GraphQLError.PathElement.field(Self.longText), count: 40)
    // The path has 256 characters: a name of 128, a period, and 127 for the second name with the ellipsis.
    #expect(
      GraphQLError(message: "m", path: path).description
        == "m (at \(Self.truncatedName).\(Self.truncatedName.dropLast(2))…)")
  }

  @Test func `Errors that differ in a property are not equal`() {
    let errors = [
      GraphQLError(message: "m"), GraphQLError(message: "n"), GraphQLError(message: "m", path: []),
      GraphQLError(message: "m", path: [.field("0")]), GraphQLError(message: "m", path: [.index(0)]),
      GraphQLError(message: "m", code: "C"), GraphQLError(message: "m", extensions: ["a": .null]),
      GraphQLError(message: "m", extensions: ["code": .string("C")]),
    ]
    #expect(Set(errors).count == errors.count)
  }
}
