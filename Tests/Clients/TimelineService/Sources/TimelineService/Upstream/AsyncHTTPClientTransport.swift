internal import AsyncHTTPClient
internal import Foundation
internal import GraphQLClient
internal import NIOCore

/// Carries the requests of a session by async-http-client.
struct AsyncHTTPClientTransport: HTTPTransport {
  let client: HTTPClient

  func send(_ request: GraphQLClient.HTTPRequest) async throws(URLError) -> GraphQLClient.HTTPResponse {
    do {
      var sent = HTTPClientRequest(url: request.url.absoluteString)
      sent.method = .RAW(value: request.method)
      for field in request.headers.fields { sent.headers.add(name: field.name, value: field.value) }
      if !request.body.isEmpty { sent.body = .bytes(request.body) }
      let response = try await client.execute(sent, timeout: .seconds(request.timeout.components.seconds + 1))
      return HTTPResponse(
        status: Int(response.status.code),
        headers: HTTPHeaders(response.headers.map { HTTPHeaders.Field(name: $0.name, value: $0.value) }),
        body: HTTPBody(response.body.map { Data($0.readableBytesView) }, translatingErrors: Self.urlError))
    } catch {
      throw Self.urlError(error)
    }
  }

  /// What an error of the client means: whether the server surely got nothing.
  private static func urlError(_ error: any Error) -> URLError {
    switch error {
    case is CancellationError, HTTPClientError.cancelled: URLError(.cancelled)
    case HTTPClientError.connectTimeout, is NIOConnectionError: URLError(.cannotConnectToHost)
    case HTTPClientError.deadlineExceeded, HTTPClientError.readTimeout: URLError(.timedOut)
    case HTTPClientError.invalidURL, HTTPClientError.emptyHost: URLError(.badURL)
    default: URLError(.networkConnectionLost)
    }
  }
}
