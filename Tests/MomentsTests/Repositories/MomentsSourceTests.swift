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
}
