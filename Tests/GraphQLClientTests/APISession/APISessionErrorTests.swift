import Foundation
import GraphQLClient
import Testing

struct APISessionErrorTests {
  private static let oneError = [GraphQLError(message: "m")]

  /// At least one error of each case.
  private static let samples: [APISessionError] = [
    .transport(URLError(.cannotConnectToHost)), .timedOut, .cancelled, .statusCode(500, bodyExcerpt: "out of order"),
    .statusCode(401, bodyExcerpt: ""), .statusCode(503, bodyExcerpt: "", retryAfter: .seconds(5)),
    .graphQL(oneError), .graphQL(oneError, status: 500), .graphQL(oneError, status: 429, retryAfter: .seconds(5)),
    .notAnAPIResponse(status: 200, bodyExcerpt: "<html>"),
    .notAnAPIResponse(status: 302, location: "/login", bodyExcerpt: ""), .emptyReply, .replyTooLarge(limit: 100),
    .undecodable(reason: "“a” is missing", excerpt: "{}"), .unencodableVariables(reason: "not a number"),
    .unsupportedURL("ftp://a"), .invalidHeader(name: "a b"),
  ]

  // MARK: - Paths

  @Test(
    arguments: [
      ([["like", "title"]], true), ([nil, ["like", "title"]], true), ([["like"], ["like", "title"]], true),
      ([["like"]], false), ([[]], false), ([nil], false), ([["other", "title"]], false),
      ([["title", "like"]], false),
    ] as [([[String]?], Bool)])
  func `An error below a root field is told from an error of the field itself, whatever its code and the status are`(
    paths: [[String]?], isBelow: Bool
  ) {
    let errors = paths.map { path in
      GraphQLError(message: "m", path: path.map { $0.map { .field($0) } }, code: "FORBIDDEN")
    }
    for status in [200, 400, 401] {
      #expect(APISessionError.graphQL(errors, status: status).hasError(below: "like") == isBelow)
    }
  }

  @Test func `Only errors of GraphQL are errors below a field`() {
    #expect(!Self.samples.contains { $0.hasError(below: "like") })
  }

  // MARK: - Descriptions

  @Test func `The description of each error is unique, on one line, and has at least two sentences or clauses`() {
    let descriptions = Self.samples.map(\.description)
    #expect(Set(descriptions).count == descriptions.count)
    for description in descriptions {
      #expect(description.hasSuffix("."))
      #expect(description.contains(". ") || description.contains("; "), "\(description)")
      #expect(!description.contains("\n"))
    }
    #expect(Self.samples.map(\.localizedDescription) == descriptions)
  }

  @Test func `A description contains the status and the server's text, or the limit, and says what to do`() {
    #expect(
      APISessionError.statusCode(503, bodyExcerpt: "busy").description
        == "The server answered with HTTP status 503: “busy”. Try again later.")
    #expect(
      APISessionError.statusCode(401, bodyExcerpt: "").description
        == "The server answered with HTTP status 401 and no text. "
        + "Check the server's address and the credentials of the request.")
    #expect(
      [1, 2].map { APISessionError.replyTooLarge(limit: $0).description } == [
        "The reply is larger than the limit of 1 byte. "
          + "Ask for less, or allow the session a larger maximum reply size.",
        "The reply is larger than the limit of 2 bytes. "
          + "Ask for less, or allow the session a larger maximum reply size.",
      ])
  }

  @Test(arguments: [
    (413, "Send less at once."), (414, "Shorten them."), (431, "Shorten them."),
    (404, "the credentials of the request."),
  ])
  func `The description of a request that no server accepts says what to change`(status: Int, advice: String) {
    #expect(APISessionError.statusCode(status, bodyExcerpt: "<html>").description.hasSuffix(advice))
  }

  @Test func `If a status makes an error transient, its description says when to try again`() {
    func advice(retryAfter: Duration?) -> String {
      let error = APISessionError.statusCode(503, bodyExcerpt: "", retryAfter: retryAfter)
      return error.description.replacing("The server answered with HTTP status 503 and no text. ", with: "")
    }
    #expect(advice(retryAfter: nil) == "Try again later.")
    #expect(advice(retryAfter: .zero) == "Try again now.")
    #expect(advice(retryAfter: .milliseconds(100)) == "Try again in 1 second.")
    #expect(advice(retryAfter: .seconds(1)) == "Try again in 1 second.")
    #expect(advice(retryAfter: .milliseconds(1_900)) == "Try again in 2 seconds.")
    #expect(advice(retryAfter: .seconds(120)) == "Try again in 120 seconds.")
    #expect(
      APISessionError.graphQL(Self.oneError, status: 429, retryAfter: .seconds(30)).description
        == "The server reported errors: m. Try again in 30 seconds.")
  }

  @Test func `The description of an error that is not transient ignores the wait that the server requests`() {
    #expect(
      APISessionError.graphQL(Self.oneError, status: 422, retryAfter: .seconds(30)).description
        == "The server reported errors: m. Correct the request; sending it again unchanged will not help.")
  }

  @Test func `The description of a response that is not from the API contains its status, its text and its location`() {
    #expect(
      APISessionError.notAnAPIResponse(status: 200, bodyExcerpt: "<html>").description
        == "Something that is not the API answered, with HTTP status 200: “<html>”. "
        + "Check the server's address, and whether the network requires a sign-in.")
    #expect(
      APISessionError.notAnAPIResponse(status: 302, location: "https://login.example/", bodyExcerpt: "").description
        == "Something that is not the API answered, with HTTP status 302 and no text. "
        + "It redirects to “https://login.example/”; if that is the server, use its address or allow its host. "
        + "Check the server's address, and whether the network requires a sign-in.")
  }

  @Test func `The description of a transport error contains its code and no control characters`() {
    let error = URLError(.networkConnectionLost, userInfo: [NSLocalizedDescriptionKey: "a\u{1B}[2Jb"])
    let description = APISessionError.transport(error).description
    #expect(description.contains("a [2Jb; URLError -1005"))
    #expect(!description.contains("\u{1B}"))
  }

  @Test func `The description of reported errors contains their paths and codes`() {
    let errors = [
      GraphQLError(message: "no such user", path: [.field("users"), .index(3)], code: "NOT_FOUND"),
      GraphQLError(message: "no such moment"),
    ]
    #expect(
      APISessionError.graphQL(errors).description
        .contains("no such user (at users.3, code NOT_FOUND); no such moment. "))
  }

  @Test func `The description of many errors quotes the first three`() {
    func quotedErrors(count: Int) -> String {
      let errors = (1...count).map { GraphQLError(message: "m\($0)") }
      return APISessionError.graphQL(errors).description
        .replacing("The server reported errors: ", with: "")
        .replacing(" Correct the request; sending it again unchanged will not help.", with: "")
    }
    #expect(quotedErrors(count: 1) == "m1.")
    #expect(quotedErrors(count: 3) == "m1; m2; m3.")
    #expect(quotedErrors(count: 4) == "m1; m2; m3; and 1 more.")
    #expect(quotedErrors(count: 100) == "m1; m2; m3; and 97 more.")
  }

  @Test(arguments: [1, 3, 4, 100])
  func `The description of errors has fewer than 4,000 characters, regardless of their content`(count: Int) {
    let longText = String(repeating: "x", count: 10_000)
    let error = GraphQLError(
      message: longText, path: Array(repeating: .field(longText), count: 100), code: longText,
      extensions: ["a": .string(longText)])
    let description = APISessionError.graphQL(Array(repeating: error, count: count)).description
    #expect(description.unicodeScalars.count < 4000)
  }

  // MARK: - Properties

  @Test func `An error is transient exactly when waiting may help`() {
    let transientErrors: [APISessionError] = [
      .transport(URLError(.networkConnectionLost)), .timedOut, .notAnAPIResponse(status: 200, bodyExcerpt: ""),
      .notAnAPIResponse(status: 302, bodyExcerpt: ""), .notAnAPIResponse(status: 404, bodyExcerpt: ""),
    ]
    #expect(transientErrors.map(\.isTransient) == transientErrors.map { _ in true })
    let otherErrors: [APISessionError] = [
      .cancelled, .graphQL(Self.oneError), .emptyReply, .replyTooLarge(limit: 1), .undecodable(reason: "", excerpt: ""),
      .unencodableVariables(reason: ""), .unsupportedURL(""), .invalidHeader(name: ""),
    ]
    #expect(otherErrors.map(\.isTransient) == otherErrors.map { _ in false })
  }

  @Test func `A status makes an error transient exactly when waiting may help`() {
    for status in 0...700 {
      let isTransient = [408, 425, 429].contains(status) || (500...599).contains(status)
      #expect(APISessionError.statusCode(status, bodyExcerpt: "").isTransient == isTransient, "\(status)")
      #expect(APISessionError.graphQL(Self.oneError, status: status).isTransient == isTransient, "\(status)")
    }
  }

  @Test func `A requested wait does not make an error transient`() {
    #expect(!APISessionError.statusCode(403, bodyExcerpt: "", retryAfter: .seconds(1)).isTransient)
    #expect(!APISessionError.graphQL(Self.oneError, retryAfter: .seconds(1)).isTransient)
  }

  @Test func `An error has the status of its response, unless the status is a success`() {
    #expect(APISessionError.statusCode(401, bodyExcerpt: "").status == 401)
    #expect(APISessionError.graphQL(Self.oneError, status: 422).status == 422)
    #expect(APISessionError.graphQL(Self.oneError, status: 302).status == 302)
    #expect(APISessionError.notAnAPIResponse(status: 302, bodyExcerpt: "").status == 302)
    #expect(APISessionError.graphQL(Self.oneError).status == nil)
    #expect(APISessionError.graphQL(Self.oneError, status: 294).status == nil)
    #expect(APISessionError.notAnAPIResponse(status: 200, bodyExcerpt: "").status == nil)
  }

  @Test func `The status and the requested wait are nil for a case that stores neither`() {
    let errors: [APISessionError] = [
      .transport(URLError(.networkConnectionLost)), .timedOut, .cancelled, .emptyReply, .replyTooLarge(limit: 1),
      .undecodable(reason: "", excerpt: ""), .unencodableVariables(reason: ""), .unsupportedURL(""),
      .invalidHeader(name: ""),
    ]
    #expect(errors.map(\.status) == errors.map { _ in nil })
    #expect(errors.map(\.retryAfter) == errors.map { _ in nil })
  }

  @Test func `An error has the wait that the server requests`() {
    #expect(APISessionError.statusCode(503, bodyExcerpt: "", retryAfter: .seconds(7)).retryAfter == .seconds(7))
    #expect(APISessionError.graphQL(Self.oneError, status: 429, retryAfter: .zero).retryAfter == .zero)
    #expect(APISessionError.statusCode(503, bodyExcerpt: "").retryAfter == nil)
    #expect(APISessionError.notAnAPIResponse(status: 302, bodyExcerpt: "").retryAfter == nil)
  }
}
