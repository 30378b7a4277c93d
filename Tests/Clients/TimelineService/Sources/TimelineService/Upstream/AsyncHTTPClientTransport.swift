internal import AsyncHTTPClient
internal import Foundation
internal import GraphQLClient
internal import NIOCore
internal import NIOHTTP1
internal import NIOPosix

/// Sends the requests of a session with async-http-client.
struct AsyncHTTPClientTransport: HTTPTransport {
  /// Lives as long as the process.
  private static let client = HTTPClient(
    eventLoopGroupProvider: .singleton,
    configuration: HTTPClient.Configuration(redirectConfiguration: .disallow))

  func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
    do {
      var clientRequest = HTTPClientRequest(url: request.url.absoluteString)
      clientRequest.method = .RAW(value: request.method)
      for field in request.headers.fields { clientRequest.headers.add(name: field.name, value: field.value) }
      if !request.body.isEmpty { clientRequest.body = .bytes(request.body) }
      // The caller enforces `request.timeout` itself, and this limit expires later.
      let response = try await Self.client.execute(
        clientRequest, timeout: .seconds(request.timeout.components.seconds + 1))
      var headers = GraphQLClient.HTTPHeaders()
      for field in response.headers { headers.add(field.value, for: field.name) }
      return HTTPResponse(
        status: Int(response.status.code), headers: headers,
        body: HTTPBody(response.body.map { Data($0.readableBytesView) }, translatingErrors: Self.urlError))
    } catch {
      throw Self.urlError(error)
    }
  }

  /// Returns the `URLError` for an error of async-http-client.
  ///
  /// The code of the `URLError` says whether the server may have received the request; see `HTTPTransport.send(_:)`.
  @Sendable private static func urlError(_ error: any Error) -> URLError {
    if error is CancellationError { return URLError(.cancelled) }
    if error is NIOConnectionError { return URLError(.cannotConnectToHost) }
    return switch error as? HTTPClientError {
    case .cancelled: URLError(.cancelled)
    case .connectTimeout: URLError(.cannotConnectToHost)
    case .deadlineExceeded, .readTimeout: URLError(.timedOut)
    case .invalidURL, .emptyHost: URLError(.badURL)
    default: URLError(.networkConnectionLost)
    }
  }
}
