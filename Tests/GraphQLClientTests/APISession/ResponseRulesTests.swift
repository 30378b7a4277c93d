import Foundation
import Testing

@testable import GraphQLClient

/// The interpretation of a response, by its media type, its status and its body.
struct ResponseRulesTests {
  private struct Payload: Decodable, Equatable {
    var a: Int
  }

  /// Sunday, 9 September 2001, 01:46:40 GMT.
  private static let now = Date(timeIntervalSince1970: 1_000_000_000)

  private static func outcome<P: Decodable & Sendable>(
    status: Int, headers: HTTPHeaders, body: String, isComplete: Bool = true, as payloadType: P.Type
  ) -> Result<GraphQLResponse<P>, APISessionError> {
    Result { () throws(APISessionError) in
      try ResponseRules(status: status, headers: headers, maximumReplySize: 1 << 24)
        .response(body: Data(body.utf8), isComplete: isComplete, now: now, as: payloadType)
    }
  }

  /// Returns the outcome of a response whose only header field is the content type.
  private static func outcome(
    _ contentType: String?, _ status: Int, _ body: String, isComplete: Bool = true
  ) -> Result<GraphQLResponse<Payload>, APISessionError> {
    var headers = HTTPHeaders()
    headers["Content-Type"] = contentType
    return outcome(status: status, headers: headers, body: body, isComplete: isComplete, as: Payload.self)
  }

  private static func error(
    _ contentType: String?, _ status: Int, _ body: String, isComplete: Bool = true
  ) -> APISessionError? {
    if case .failure(let error) = outcome(contentType, status, body, isComplete: isComplete) { error } else { nil }
  }

  // MARK: - Table

  enum Body: String, CaseIterable {
    case data = #"{"data":{"a":1}}"#
    case dataAndErrors = #"{"data":{"a":1},"errors":[{"message":"m"}]}"#
    case nullData = #"{"data":null}"#
    case nullDataAndErrors = #"{"data":null,"errors":[{"message":"m"}]}"#
    case errors = #"{"errors":[{"message":"m"}]}"#
    case emptyObject = "{}"
    case list = "[]"
    case html = "<html>Sign in</html>"
    case nothing = ""
    case cutOff = #"{"data":{"a":1"#
  }

  enum Meaning {
    case response, emptyReply, graphQLErrors, statusCode, notAnAPI, undecodable
  }

  /// The meaning of each body for a set of media types and statuses.
  struct Row: CustomTestStringConvertible {
    var testDescription: String
    let contentTypes: [String?]
    let statuses: [Int]
    let meanings: [Body: Meaning]
  }

  private static let graphQLTypes: [String?] = [
    "application/graphql-response+json", "Application/GraphQL-Response+JSON; charset=utf-8",
  ]
  private static let jsonTypes: [String?] = ["application/json; charset=utf-8", "application/problem+json", nil]
  private static let otherTypes: [String?] = ["text/html; charset=utf-8", "application/octet-stream"]

  private static let successes = [200, 201, 204, 294]
  /// The failures that mean the same whether the server or a gateway sends them.
  private static let unambiguousFailures = [401, 405, 407, 408, 409, 413, 414, 425, 429, 431, 500, 503]
  private static let redirections = [300, 302, 307]
  private static let otherFailures = [101, 400, 403, 404, 422, 600]

  private static func sameForAllBodies(_ meaning: Meaning) -> [Body: Meaning] {
    Dictionary(uniqueKeysWithValues: Body.allCases.map { ($0, meaning) })
  }

  /// The meanings of the bodies with errors, if these are reported.
  private static let reportedErrors: [Body: Meaning] = [
    .dataAndErrors: .graphQLErrors, .nullDataAndErrors: .graphQLErrors, .errors: .graphQLErrors,
  ]

  static let table: [Row] = [
    Row(
      testDescription: "success, GraphQL or plain JSON", contentTypes: graphQLTypes + jsonTypes, statuses: successes,
      meanings: [
        .data: .response, .dataAndErrors: .response, .nullData: .emptyReply, .nullDataAndErrors: .graphQLErrors,
        .errors: .graphQLErrors, .emptyObject: .notAnAPI, .list: .notAnAPI, .html: .notAnAPI, .nothing: .emptyReply,
        .cutOff: .undecodable,
      ]),
    Row(
      testDescription: "failure, GraphQL media type", contentTypes: graphQLTypes,
      statuses: unambiguousFailures + redirections + otherFailures,
      meanings: [
        .data: .statusCode, .dataAndErrors: .graphQLErrors, .nullData: .statusCode,
        .nullDataAndErrors: .graphQLErrors, .errors: .graphQLErrors, .emptyObject: .statusCode, .list: .statusCode,
        .html: .statusCode, .nothing: .statusCode, .cutOff: .statusCode,
      ]),
    Row(
      testDescription: "unambiguous failure, plain JSON", contentTypes: jsonTypes, statuses: unambiguousFailures,
      meanings: sameForAllBodies(.statusCode).merging(reportedErrors) { $1 }),
    Row(
      testDescription: "unambiguous failure, not JSON", contentTypes: otherTypes, statuses: unambiguousFailures,
      meanings: sameForAllBodies(.statusCode)),
    Row(
      testDescription: "redirection, plain JSON", contentTypes: jsonTypes, statuses: redirections,
      meanings: sameForAllBodies(.notAnAPI)),
    Row(
      testDescription: "other failure, plain JSON", contentTypes: jsonTypes, statuses: otherFailures,
      meanings: [
        .data: .statusCode, .nullData: .statusCode, .emptyObject: .notAnAPI, .list: .notAnAPI, .html: .notAnAPI,
        .nothing: .notAnAPI, .cutOff: .notAnAPI,
      ].merging(reportedErrors) { $1 }),
    Row(
      testDescription: "any status except an unambiguous failure, not JSON", contentTypes: otherTypes,
      statuses: successes + redirections + otherFailures, meanings: sameForAllBodies(.notAnAPI)),
  ]

  /// Returns the expected outcome of a response that requests a wait of 120 seconds and has a location.
  private static func expectedOutcome(
    _ meaning: Meaning, status: Int, body: Body
  ) -> Result<GraphQLResponse<Payload>, APISessionError> {
    let errors = [GraphQLError(message: "m")]
    switch meaning {
    case .response:
      return .success(GraphQLResponse(data: Payload(a: 1), errors: body == .dataAndErrors ? errors : []))
    case .emptyReply:
      return .failure(.emptyReply)
    case .graphQLErrors:
      return .failure(.graphQL(errors, status: status, retryAfter: .seconds(120)))
    case .statusCode:
      return .failure(.statusCode(status, bodyExcerpt: body.rawValue, retryAfter: .seconds(120)))
    case .notAnAPI:
      return .failure(
        .notAnAPIResponse(status: status, location: "https://login.example/", bodyExcerpt: body.rawValue))
    case .undecodable:
      return .failure(.undecodable(reason: "The given data was not valid JSON", excerpt: body.rawValue))
    }
  }

  @Test(arguments: table)
  func `Media type, status and body determine the meaning of a response`(row: Row) throws {
    for contentType in row.contentTypes {
      for status in row.statuses {
        for body in Body.allCases {
          var headers: HTTPHeaders = ["Retry-After": "120", "Location": "https://login.example/"]
          headers["Content-Type"] = contentType
          let outcome = Self.outcome(status: status, headers: headers, body: body.rawValue, as: Payload.self)
          let meaning = try #require(row.meanings[body])
          #expect(
            outcome == Self.expectedOutcome(meaning, status: status, body: body),
            "\(contentType ?? "none") \(status) \(body)")
        }
      }
    }
  }

  @Test func `The table has each combination of media type and status exactly once`() {
    let contentTypes = Self.graphQLTypes + Self.jsonTypes + Self.otherTypes
    let statuses = Self.successes + Self.unambiguousFailures + Self.redirections + Self.otherFailures
    for contentType in contentTypes {
      for status in statuses {
        let rows = Self.table.filter { $0.contentTypes.contains(contentType) && $0.statuses.contains(status) }
        #expect(rows.count == 1, "\(contentType ?? "none") \(status)")
      }
    }
    // No element was removed from the lists, and none occurs twice.
    #expect(Set(statuses).count == 25)
    #expect(Set(contentTypes).count == 7)
  }

  // MARK: - Shapes

  @Test(arguments: ["application/json", "application/graphql-response+json"])
  func `Data of the wrong shape is undecodable, and the reason contains the path`(contentType: String) throws {
    let body = #"{"data":{"a":"text"}}"#
    guard case .undecodable(let reason, let excerpt) = Self.error(contentType, 200, body) else {
      Issue.record("expected an undecodable reply")
      return
    }
    #expect(reason.hasSuffix(" at data.a"))
    #expect(excerpt == body)
  }

  @Test func `The server's errors take precedence over data of the wrong shape`() {
    let body = #"{"data":{"a":null},"errors":[{"message":"m"}]}"#
    #expect(Self.error("application/json", 200, body) == .graphQL([GraphQLError(message: "m")]))
    #expect(
      Self.error("application/graphql-response+json", 422, body)
        == .graphQL([GraphQLError(message: "m")], status: 422))
  }

  @Test func `The shape of the data in a failure does not matter`() {
    let body = #"{"data":{"a":null}}"#
    #expect(Self.error("application/graphql-response+json", 400, body) == .statusCode(400, bodyExcerpt: body))
    #expect(Self.error("application/json", 400, body) == .statusCode(400, bodyExcerpt: body))
  }

  @Test(arguments: ["1", "true", "null", #""text""#, #"{"message":"m"}"#, #"[{"data":{"a":1}}]"#])
  func `JSON that is not shaped like a GraphQL response is not from the API`(body: String) {
    #expect(Self.error("application/json", 200, body) == .notAnAPIResponse(status: 200, bodyExcerpt: body))
    #expect(Self.error("application/json", 400, body) == .notAnAPIResponse(status: 400, bodyExcerpt: body))
  }

  @Test(arguments: [
    #"{"errors":[]}"#, #"{"errors":["m"]}"#, #"{"errors":[{"detail":"m"}]}"#, #"{"errors":{"a":["m"]}}"#,
    #"{"errors":null}"#, #"{"errors":[{"message":1}]}"#, #"{"error":"m"}"#,
  ])
  func `A failure whose errors are not those of a GraphQL response is not from the API`(body: String) {
    #expect(Self.error("application/json", 400, body) == .notAnAPIResponse(status: 400, bodyExcerpt: body))
  }

  @Test(arguments: [#"{"errors":null}"#, #"{"errors":[]}"#, #"{"data":null,"errors":null}"#])
  func `A success shaped like a GraphQL response, but with neither data nor errors, is an empty reply`(body: String) {
    #expect(Self.error("application/json", 200, body) == .emptyReply)
  }

  @Test func `A response carries its extensions`() {
    let body = #"{"data":{"a":1},"errors":[{"message":"m","extensions":{"x":true}}],"extensions":{"cost":3}}"#
    #expect(
      Self.outcome("application/json", 200, body)
        == .success(
          GraphQLResponse(
            data: Payload(a: 1), errors: [GraphQLError(message: "m", extensions: ["x": .bool(true)])],
            extensions: ["cost": .integer(3)])))
  }

  // MARK: - Sizes

  @Test func `The limit is the maximum reply size for GraphQL responses, 64 KiB for other JSON, and 2 KiB otherwise`() {
    func limit(_ contentType: String?, _ status: Int) -> Int {
      var headers = HTTPHeaders()
      headers["Content-Type"] = contentType
      return ResponseRules(status: status, headers: headers, maximumReplySize: 1_000_000).maximumBodySize
    }
    #expect(limit("application/json", 200) == 1_000_000)
    #expect(limit(nil, 299) == 1_000_000)
    #expect(limit("application/graphql-response+json", 200) == 1_000_000)
    #expect(limit("application/graphql-response+json", 500) == 1_000_000)
    #expect(limit("application/json", 199) == 65_536)
    #expect(limit("application/json", 300) == 65_536)
    #expect(limit(nil, 500) == 65_536)
    #expect(limit("text/html", 200) == 2048)
    #expect(limit("text/html", 500) == 2048)
  }

  @Test func `An incomplete body is reported as too large, as a failure, or as not from the API`() {
    let body = #"{"data":{"a":1}}"#
    #expect(Self.error("application/json", 200, body, isComplete: false) == .replyTooLarge(limit: 1 << 24))
    #expect(Self.error(nil, 200, "", isComplete: false) == .replyTooLarge(limit: 1 << 24))
    #expect(Self.error("application/json", 500, "{", isComplete: false) == .statusCode(500, bodyExcerpt: "{"))
    #expect(
      Self.error("application/json", 400, body, isComplete: false)
        == .notAnAPIResponse(status: 400, bodyExcerpt: body))
    #expect(
      Self.error("text/html", 200, "<", isComplete: false) == .notAnAPIResponse(status: 200, bodyExcerpt: "<"))
  }

  /// If the connection is lost in the body of a failure, the body is incomplete although it is far below the limit.
  @Test func `A failure with an incomplete body is reported with its status, not as too large`() {
    #expect(
      Self.error("application/graphql-response+json", 503, #"{"errors":[{"mes"#, isComplete: false)
        == .statusCode(503, bodyExcerpt: #"{"errors":[{"mes"#))
  }

  @Test(arguments: [
    ("100", false), ("101", true), ("0", false), ("9223372036854775807", true), ("9223372036854775808", true),
    ("99999999999999999999999999", true), ("", false), ("-1", false), ("many", false), ("101, 101", false),
    ("1e9", false),
  ])
  func `Only decimal digits can declare a length beyond the limit`(length: String, isOversized: Bool) {
    let headers: HTTPHeaders = ["Content-Type": "application/json", "Content-Length": length]
    #expect(
      ResponseRules(status: 200, headers: headers, maximumReplySize: 100).declaresOversizedBody == isOversized)
  }

  @Test func `The declared length matters only for an uncompressed, successful GraphQL response`() {
    func isOversized(_ status: Int, _ headers: HTTPHeaders) -> Bool {
      ResponseRules(status: status, headers: headers, maximumReplySize: 100).declaresOversizedBody
    }
    #expect(isOversized(200, ["Content-Length": "101"]))
    #expect(isOversized(294, ["Content-Type": "application/graphql-response+json", "Content-Length": "101"]))
    #expect(!isOversized(500, ["Content-Type": "application/graphql-response+json", "Content-Length": "101"]))
    #expect(!isOversized(200, ["Content-Encoding": "gzip", "Content-Length": "101"]))
    #expect(!isOversized(200, ["Content-Type": "text/html", "Content-Length": "101"]))
    #expect(!isOversized(500, ["Content-Type": "application/json", "Content-Length": "101"]))
    #expect(!isOversized(200, ["Content-Type": "application/json"]))
  }

  // MARK: - Fields

  @Test func `A failure has the wait that the server requests, up to a day`() {
    func retryAfter(_ headers: HTTPHeaders) -> Duration? {
      guard
        case .failure(let error) = Self.outcome(status: 503, headers: headers, body: "", as: Payload.self)
      else { return nil }
      return error.retryAfter
    }
    #expect(retryAfter(["Retry-After": "7"]) == .seconds(7))
    #expect(retryAfter(["Retry-After": "86401"]) == .seconds(86_400))
    #expect(retryAfter(["Retry-After": "Sun, 09 Sep 2001 01:46:50 GMT"]) == .seconds(10))
    #expect(
      retryAfter(["Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT", "Date": "Sun, 06 Nov 1994 08:49:07 GMT"])
        == .seconds(30))
    #expect(retryAfter(["Retry-After": "soon"]) == nil)
    #expect(retryAfter([:]) == nil)
  }

  @Test func `Reported errors have the wait that the server requests`() {
    let body = #"{"errors":[{"message":"m"}]}"#
    let headers: HTTPHeaders = ["Content-Type": "application/graphql-response+json", "Retry-After": "5"]
    #expect(
      Self.outcome(status: 429, headers: headers, body: body, as: Payload.self)
        == .failure(.graphQL([GraphQLError(message: "m")], status: 429, retryAfter: .seconds(5))))
  }

  @Test func `The error for a redirection that is not from the API contains the location`() {
    #expect(
      Self.outcome(status: 302, headers: ["Location": "/login"], body: "", as: Payload.self)
        == .failure(.notAnAPIResponse(status: 302, location: "/login", bodyExcerpt: "")))
    #expect(Self.error(nil, 302, "") == .notAnAPIResponse(status: 302, bodyExcerpt: ""))
  }

  // MARK: - Server text

  private static let hostileText = "a\u{1B}[2Jb\u{07}c\u{202E}d\u{2028}e"
  private static let sanitizedText = "a [2Jb c d e"
  private static let hugeText = String(repeating: "x", count: 4 << 20)
  /// The huge text, truncated to 512 Unicode scalars.
  private static let truncatedText = String(repeating: "x", count: 511) + "…"

  /// Returns the text as a JSON string, with its quotation marks.
  private static func jsonString(_ text: String) throws -> String {
    String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
  }

  private static func isHarmless(_ text: String) -> Bool {
    text.unicodeScalars.allSatisfy { scalar in
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator: false
      default: true
      }
    }
  }

  /// Checks that an outcome is the expected error, whose description is harmless and short and contains `quotation`.
  private static func expect<P: Decodable & Sendable & Equatable>(
    _ outcome: Result<GraphQLResponse<P>, APISessionError>, is expected: APISessionError, quoting quotation: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(outcome == .failure(expected), sourceLocation: sourceLocation)
    guard case .failure(let error) = outcome else { return }
    #expect(isHarmless(error.description), sourceLocation: sourceLocation)
    #expect(isHarmless(error.localizedDescription), sourceLocation: sourceLocation)
    #expect(error.description.unicodeScalars.count < 4000, sourceLocation: sourceLocation)
    #expect(error.description.contains(quotation), sourceLocation: sourceLocation)
  }

  @Test func `The body excerpt of a failure is sanitized and truncated`() {
    for (text, excerpt) in [(Self.hostileText, Self.sanitizedText), (Self.hugeText, Self.truncatedText)] {
      for contentType in ["text/html", "application/json", "application/graphql-response+json"] {
        Self.expect(
          Self.outcome(contentType, 500, text), is: .statusCode(500, bodyExcerpt: excerpt), quoting: "“\(excerpt)”")
      }
    }
  }

  @Test func `The body excerpt and the location of a response that is not from the API are sanitized and truncated`() {
    for (text, excerpt) in [(Self.hostileText, Self.sanitizedText), (Self.hugeText, Self.truncatedText)] {
      let headers: HTTPHeaders = ["Content-Type": "text/html", "Location": text]
      let outcome = Self.outcome(status: 302, headers: headers, body: text, as: Payload.self)
      Self.expect(
        outcome, is: .notAnAPIResponse(status: 302, location: excerpt, bodyExcerpt: excerpt),
        quoting: "to “\(excerpt)”")
    }
  }

  @Test func `The text of reported errors is sanitized and truncated`() throws {
    for (text, excerpt) in [(Self.hostileText, Self.sanitizedText), (Self.hugeText, Self.truncatedText)] {
      let json = try Self.jsonString(text)
      let body = #"{"errors":[{"message":\#(json),"path":[\#(json),1],"extensions":{"code":\#(json)}}]}"#
      // Creating an error truncates its code and its field names to the limit for names, which is smaller than the
      // limit for messages. The extensions remain as the server sent them.
      for status in [200, 401] {
        Self.expect(
          Self.outcome("application/graphql-response+json", status, body),
          is: .graphQL(
            [
              GraphQLError(
                message: excerpt, path: [.field(excerpt), .index(1)], code: excerpt,
                extensions: ["code": .string(text)])
            ],
            status: status),
          quoting: "code \(GraphQLError(message: "", code: excerpt).code ?? "")")
      }
    }
  }

  @Test func `The excerpt of an undecodable reply is sanitized and truncated`() {
    for (text, excerpt) in [(Self.hostileText, Self.sanitizedText), (Self.hugeText, Self.truncatedText)] {
      Self.expect(
        Self.outcome("application/json", 200, text),
        is: .undecodable(reason: "The given data was not valid JSON", excerpt: excerpt), quoting: "begins “\(excerpt)”")
    }
  }

  @Test func `The reason of an undecodable reply is sanitized and truncated`() throws {
    for (text, expectedSuffix) in [(Self.hostileText, " at data.\(Self.sanitizedText)"), (Self.hugeText, "xxx…")] {
      let body = #"{"data":{\#(try Self.jsonString(text)):"text"}}"#
      let outcome = Self.outcome(
        status: 200, headers: ["Content-Type": "application/json"], body: body, as: [String: Int].self)
      guard case .failure(let error) = outcome, case .undecodable(let reason, let excerpt) = error else {
        Issue.record("expected an undecodable reply")
        return
      }
      #expect(reason.hasSuffix(expectedSuffix))
      #expect(reason.unicodeScalars.count <= 512)
      #expect(excerpt.unicodeScalars.count <= 512)
      // The outcome is compared with its own error, so only the checks of the description matter.
      Self.expect(outcome, is: error, quoting: expectedSuffix)
      #expect(Self.isHarmless(reason))
      #expect(Self.isHarmless(excerpt))
    }
  }
}
