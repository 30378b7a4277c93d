import Foundation
import Testing

@testable import GraphQLClient

struct GraphQLErrorCodesTests {
  private static func errors(_ codes: [String?]) -> [GraphQLError] {
    codes.map { GraphQLError(message: "m", code: $0) }
  }

  @Test(arguments: [
    (["UNAUTHENTICATED"], GraphQLErrorCodes.Meaning.needsSignIn), (["invalid-jwt"], .needsSignIn),
    (["UnauthorizedException"], .needsSignIn), (["THROTTLED"], .retryLater), (["RATE_LIMITED"], .retryLater),
    (["SERVICE_UNAVAILABLE"], .retryLater), (["TIMEOUT"], .unknownOutcome), (["ExecutionTimeout"], .unknownOutcome),
    (["INTERNAL_SERVER_ERROR"], .unknownOutcome), (["HC0045"], .unknownOutcome), (["BAD_USER_INPUT"], .refused),
    (["Unauthorized"], .refused),
    (["A_CODE_OF_THE_APP"], .refused), ([nil], .refused),
  ])
  func `A code has the meaning that the standard table gives it`(
    codes: [String?], meaning: GraphQLErrorCodes.Meaning
  ) {
    #expect(GraphQLErrorCodes.standard.meaning(of: Self.errors(codes)) == meaning)
  }

  @Test func `Of several meanings, the most cautious one counts`() {
    let codesByCaution = ["INTERNAL_SERVER_ERROR", "UNAUTHENTICATED", "THROTTLED", "FORBIDDEN"]
    for (index, code) in codesByCaution.enumerated() {
      for other in codesByCaution[index...] + ["A_CODE_OF_THE_APP"] {
        for codes in [[code, other], [other, code]] {
          #expect(
            GraphQLErrorCodes.standard.meaning(of: Self.errors(codes)) == GraphQLErrorCodes.standard[code],
            "\(codes)")
        }
      }
    }
    #expect(GraphQLErrorCodes.Meaning.allCases == [.unknownOutcome, .needsSignIn, .retryLater, .refused])
  }

  @Test func `An error without a known code has the fallback meaning`() {
    for codes in [[nil], ["A_CODE_OF_THE_APP"], []] as [[String?]] {
      #expect(GraphQLErrorCodes.standard.meaning(of: Self.errors(codes), otherwise: .retryLater) == .retryLater)
    }
    let codes = Self.errors(["BAD_USER_INPUT", nil])
    #expect(GraphQLErrorCodes.standard.meaning(of: codes, otherwise: .unknownOutcome) == .unknownOutcome)
  }

  @Test func `A table can be changed and replaced`() {
    var codes = GraphQLErrorCodes.standard
    codes["SESSION_EXPIRED"] = .needsSignIn
    codes["THROTTLED"] = nil
    #expect(codes.meaning(of: Self.errors(["SESSION_EXPIRED"])) == .needsSignIn)
    #expect(codes.meaning(of: Self.errors(["THROTTLED"])) == .refused)
    let ownCodes: GraphQLErrorCodes = ["E1": .retryLater, "E2": .refused]
    #expect(ownCodes.meaning(of: Self.errors(["E1"])) == .retryLater)
    #expect(ownCodes["UNAUTHENTICATED"] == nil)
  }

  @Test func `Each name has one meaning in the standard table, and each meaning has names`() {
    let names = GraphQLErrorCodes.standardNames.values.flatMap(\.self)
    #expect(Set(names).count == names.count)
    #expect(Set(GraphQLErrorCodes.standardNames.keys) == Set(GraphQLErrorCodes.Meaning.allCases))
  }

  // MARK: - Where servers put the name

  @Test(arguments: [
    (#"{"message":"m","extensions":{"code":"A","errorType":"B","classification":"C"},"errorType":"D"}"#, "A"),
    (#"{"message":"m","extensions":{"errorType":"B","classification":"C"},"errorType":"D","type":"E"}"#, "B"),
    (#"{"message":"m","extensions":{"classification":"C"},"errorType":"D","type":"E"}"#, "C"),
    (#"{"message":"m","extensions":{"code":7,"classification":{"type":"X"}},"errorType":"D","type":"E"}"#, "D"),
    (#"{"message":"m","errorType":null,"type":"E"}"#, "E"), (#"{"message":"m","errorType":7,"type":[]}"#, nil),
  ])
  func `The code is the first name that is text, in the order of the places where servers put it`(
    json: String, code: String?
  ) throws {
    #expect(try JSONDecoder().decode(GraphQLError.self, from: Data(json.utf8)).code == code)
  }

  // MARK: - Errors of a session

  @Test(arguments: [
    (200, nil, GraphQLErrorCodes.Meaning.refused), (400, nil, .refused), (422, 1, .refused), (401, nil, .needsSignIn),
    (407, 1, .needsSignIn), (408, nil, .unknownOutcome), (429, nil, .unknownOutcome), (429, 1, .retryLater),
    (503, nil, .unknownOutcome), (503, 1, .retryLater), (409, nil, .unknownOutcome), (409, 1, .retryLater),
  ])
  func `The status is the meaning of an error without a known code`(
    status: Int, seconds: Int?, meaning: GraphQLErrorCodes.Meaning
  ) {
    let retryAfter = seconds.map(Duration.seconds)
    let error = APISessionError.graphQL(Self.errors([nil]), status: status, retryAfter: retryAfter)
    #expect(error.meaning(by: .standard) == meaning)
    let throttled = APISessionError.graphQL(Self.errors(["THROTTLED"]), status: status, retryAfter: retryAfter)
    #expect(throttled.meaning(by: .standard) == .retryLater)
    #expect(APISessionError.statusCode(status, bodyExcerpt: "").meaning(by: .standard) == nil)
  }

  @Test(
    arguments: [
      (["like"], nil, 200, GraphQLErrorCodes.Meaning.unknownOutcome),
      (["like"], "A_CODE_OF_THE_APP", 400, .unknownOutcome),
      (["like"], "FORBIDDEN", 200, .refused), (["like"], nil, 401, .needsSignIn), (nil, nil, 200, .refused),
      (nil, nil, 503, .unknownOutcome),
    ] as [([String]?, String?, Int, GraphQLErrorCodes.Meaning)])
  func `The table says what an error of a field without a known code means, if the status has no meaning`(
    path: [String]?, code: String?, status: Int, meaning: GraphQLErrorCodes.Meaning
  ) {
    var codes = GraphQLErrorCodes.standard
    codes.uncodedFieldErrors = .unknownOutcome
    let refused = GraphQLError(message: "m", code: "BAD_USER_INPUT")
    let error = GraphQLError(message: "m", path: path.map { $0.map { .field($0) } }, code: code)
    #expect(APISessionError.graphQL([error, refused], status: status).meaning(by: codes) == meaning)
  }

  @Test func `A known code decides whether an error is transient, and what its description advises`() {
    let unauthenticated = APISessionError.graphQL(Self.errors(["UNAUTHENTICATED"]), status: 503)
    #expect(!unauthenticated.isTransient)
    #expect(
      unauthenticated.description
        == "The server reported errors: m (code UNAUTHENTICATED). Sign in again, then repeat the request.")
    let throttled = APISessionError.graphQL(Self.errors(["THROTTLED"]), retryAfter: .seconds(1))
    #expect(throttled.isTransient)
    #expect(
      throttled.description == "The server reported errors: m (code THROTTLED). Try again in 1 second.")
  }

  @Test(arguments: [200, 400, 500])
  func `The codes of plain JSON are read regardless of the status`(status: Int) {
    let body = #"{"data":null,"errors":[{"message":"Token expired","extensions":{"code":"UNAUTHENTICATED"}}]}"#
    let rules = ResponseRules(
      status: status, headers: ["Content-Type": "application/json", "Retry-After": "1"], maximumReplySize: 1_000)
    let error = #expect(throws: APISessionError.self) {
      try rules.response(body: Data(body.utf8), isComplete: true, now: Date(), as: [String: Int].self)
    }
    #expect(error?.meaning(by: .standard) == .needsSignIn)
    #expect(error?.retryAfter == .seconds(1))
  }
}
