import Foundation
import GraphQLClient
import MomentsTesting
import Repository
import Testing

@testable import Moments

@Suite struct MomentsSourceTests {
  private let source = MomentsSource(
    getMomentsSession: GetMomentsByUserIDSessionStub { _ throws(APISessionError) in throw .timedOut },
    updateLikeSession: UpdateMomentLikeSessionStub { _ throws(APISessionError) in throw .timedOut })

  @Test(arguments: [
    URLError.Code.unsupportedURL, .badURL, .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost,
    .notConnectedToInternet,
  ])
  func `A request that failed before it was sent is retried later`(code: URLError.Code) {
    #expect(source.disposition(of: .transport(URLError(code))) == .retryLater())
  }

  // `HTTPTransport` doesn't promise for any of these errors, not even a TLS failure, that nothing was sent.
  @Test(arguments: [
    URLError.Code.timedOut, .networkConnectionLost, .badServerResponse, .cancelled, .secureConnectionFailed, .unknown,
  ])
  func `A request that may have been sent has an unknown outcome`(code: URLError.Code) {
    #expect(source.disposition(of: .transport(URLError(code))) == .unknownOutcome)
  }

  @Test func `A timeout has an unknown outcome`() {
    #expect(source.disposition(of: .timedOut) == .unknownOutcome)
  }

  @Test(arguments: [URLError.Code.timedOut, .cancelled, .unknown])
  func `A request that ended before it was sent is retried later`(code: URLError.Code) {
    #expect(source.disposition(of: .transport(.unsentRequest(code))) == .retryLater())
  }

  @Test(arguments: [405, 413, 414, 431])
  func `A request that the server can never accept is refused`(status: Int) {
    #expect(source.disposition(of: .statusCode(status, bodyExcerpt: "<html>")) == .refused)
  }

  // MARK: - Codes

  private static func failure(_ codes: [String?], status: Int = 200, retryAfter: Duration? = nil) -> APISessionError {
    .graphQL(codes.map { GraphQLError(message: "m", code: $0) }, status: status, retryAfter: retryAfter)
  }

  @Test(arguments: [
    (["UNAUTHENTICATED"], FailureDisposition.needsSignIn), (["invalid-jwt"], .needsSignIn),
    (["THROTTLED"], .retryLater(after: .seconds(1))), (["RATE_LIMITED"], .retryLater(after: .seconds(1))),
    (["SERVICE_UNAVAILABLE"], .retryLater(after: .seconds(1))), ([nil], .refused),
    (["TIMEOUT"], .unknownOutcome(after: .seconds(1))), (["BAD_USER_INPUT"], .refused),
    (["INTERNAL_SERVER_ERROR"], .unknownOutcome(after: .seconds(1))),
    (["BAD_USER_INPUT", "UNAUTHENTICATED", "THROTTLED"], .needsSignIn),
    (["INTERNAL_SERVER_ERROR", "UNAUTHENTICATED"], .unknownOutcome(after: .seconds(1))),
  ])
  func `The codes of reported errors decide how to proceed`(codes: [String?], disposition: FailureDisposition) {
    for status in [200, 400, 422] {
      let failure = Self.failure(codes, status: status, retryAfter: .seconds(1))
      #expect(source.disposition(of: failure) == disposition, "\(status)")
    }
  }

  @Test func `Reported errors without a known code are judged by the status, as before`() {
    for codes in [[nil], ["A_CODE_OF_THE_APP"]] as [[String?]] {
      #expect(source.disposition(of: Self.failure(codes, status: 401)) == .needsSignIn)
      #expect(source.disposition(of: Self.failure(codes, status: 503)) == .unknownOutcome)
      #expect(
        source.disposition(of: Self.failure(codes, status: 503, retryAfter: .seconds(2)))
          == .retryLater(after: .seconds(2)))
      #expect(source.disposition(of: Self.failure(codes, status: 409)) == .unknownOutcome)
    }
  }

  @Test func `The app can replace the table of codes`() {
    var source = source
    source.errorCodes = ["E1": .needsSignIn]
    #expect(source.disposition(of: Self.failure(["E1"])) == .needsSignIn)
    #expect(source.disposition(of: Self.failure(["UNAUTHENTICATED"])) == .refused)
  }
}
