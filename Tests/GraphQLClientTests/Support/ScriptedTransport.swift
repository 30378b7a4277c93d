import Foundation
import GraphQLClient
import Multicast

/// A transport that records the requests and answers with a closure, without a network.
final class ScriptedTransport: HTTPTransport {
  private let recorded = Lock<[HTTPRequest]>([])
  private let answer: @Sendable (HTTPRequest) async throws(URLError) -> HTTPResponse

  init(answer: @escaping @Sendable (HTTPRequest) async throws(URLError) -> HTTPResponse) {
    self.answer = answer
  }

  /// The recorded requests, in order.
  var requests: [HTTPRequest] { recorded.withLock { $0 } }

  func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
    recorded.withLock { $0.append(request) }
    return try await answer(request)
  }
}

extension HTTPResponse {
  /// Returns a successful JSON response with the given body.
  static func json(_ body: String) -> HTTPResponse {
    HTTPResponse(status: 200, headers: ["Content-Type": "application/json"], body: HTTPBody(Data(body.utf8)))
  }

  static func redirect(_ status: Int, to location: String) -> HTTPResponse {
    HTTPResponse(status: status, headers: ["Location": location], body: HTTPBody(Data()))
  }
}
