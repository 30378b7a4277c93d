import Foundation
import Moments
import Testing

struct APISessionErrorTests {
  private static let all: [APISessionError] = [
    .transport(URLError(.cannotConnectToHost)), .timedOut, .cancelled, .statusCode(500, bodyExcerpt: "out of order"),
    .statusCode(401, bodyExcerpt: ""), .graphQL([GraphQLError(message: "m")]), .emptyReply,
    .replyTooLarge(limit: 100), .undecodable(reason: "“a” is missing", excerpt: "{}"),
    .unencodableVariables(reason: "not a number"), .unsupportedURL("ftp://a"), .invalidHeader(name: "a b"),
  ]

  @Test func `Every error says what happened and what to do, in sentences of its own`() {
    let descriptions = Self.all.map(\.description)
    #expect(Set(descriptions).count == descriptions.count)
    for description in descriptions {
      #expect(description.hasSuffix("."))
      #expect(description.contains(". ") || description.contains("; "), "\(description)")
      #expect(!description.contains("\n"))
    }
    #expect(Self.all.map(\.localizedDescription) == descriptions)
  }

  @Test func `An error names what is known of it`() {
    #expect(APISessionError.statusCode(503, bodyExcerpt: "busy").description.contains("503: “busy”"))
    #expect(APISessionError.replyTooLarge(limit: 100).description.contains("100 bytes"))
    let errors = [
      GraphQLError(message: "no such user", path: [.field("users"), .index(3)], code: "NOT_FOUND"),
      GraphQLError(message: "no such moment"),
    ]
    #expect(
      APISessionError.graphQL(errors).description
        .contains("no such user (at users.3, code NOT_FOUND); no such moment"))
  }

  @Test func `An error is transient exactly when waiting may help`() {
    let transient: [APISessionError] = [
      .transport(URLError(.networkConnectionLost)), .timedOut,
      .statusCode(408, bodyExcerpt: ""), .statusCode(425, bodyExcerpt: ""), .statusCode(429, bodyExcerpt: ""),
      .statusCode(500, bodyExcerpt: ""), .statusCode(503, bodyExcerpt: ""), .statusCode(599, bodyExcerpt: ""),
    ]
    #expect(transient.map(\.isTransient) == transient.map { _ in true })
    let final: [APISessionError] = [
      .cancelled, .statusCode(302, bodyExcerpt: ""), .statusCode(400, bodyExcerpt: ""),
      .statusCode(401, bodyExcerpt: ""), .statusCode(404, bodyExcerpt: ""), .graphQL([GraphQLError(message: "m")]),
      .emptyReply, .replyTooLarge(limit: 1), .undecodable(reason: "", excerpt: ""),
      .unencodableVariables(reason: ""), .unsupportedURL(""), .invalidHeader(name: ""),
    ]
    #expect(final.map(\.isTransient) == final.map { _ in false })
  }
}
