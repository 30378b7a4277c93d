internal import Foundation
internal import GraphQLClient
internal import Synchronization

/// Sends requests with the user's token, and reads the JSON of the replies.
final class HTTPClient: Sendable {
  struct Reply: Sendable {
    var etag: String?
    var body: Data
  }

  let session = Session()
  private let server: URL
  private let transport: any HTTPTransport
  private let timeout: Duration
  /// The last replies with an ETag, whose bodies the server doesn't send again while they haven't changed.
  ///
  /// They are kept as long as the client, like those of a cache without a limit.
  private let knownReplies = Mutex<[URL: Reply]>([:])

  init(_ server: URL, _ transport: any HTTPTransport, timeout: Duration) {
    (self.server, self.transport, self.timeout) = (server, transport, timeout)
  }

  func get(_ path: String, query: [URLQueryItem] = []) async throws(TrackerError) -> Reply {
    var url = server.appending(path: path)
    if !query.isEmpty { url.append(queryItems: query) }
    let known = knownReplies.withLock { [url] in $0[url] }
    let (status, reply) = try await send(url, "GET", headers: known?.etag.map { ["If-None-Match": $0] } ?? [:])
    if status == 304, let known { return known }
    if reply.etag != nil { knownReplies.withLock { [url] in $0[url] = reply } }
    return reply
  }

  /// Sends a change; the server makes it at most once, even if it receives the same `requestID` again.
  func change(
    _ path: String, _ method: String, _ fields: [String: String] = [:], ifMatch: String? = nil, requestID: String
  ) async throws(TrackerError) -> Reply {
    var headers: HTTPHeaders = ["Content-Type": "application/json", "Idempotency-Key": requestID]
    headers["If-Match"] = ifMatch
    return try await send(server.appending(path: path), method, headers: headers, fields).reply
  }

  private func send(
    _ url: URL, _ method: String, headers: HTTPHeaders, _ fields: [String: String]? = nil
  ) async throws(TrackerError) -> (status: Int, reply: Reply) {
    var request = HTTPRequest(url: url, method: method, headers: headers, timeout: timeout)
    let token = session.token
    request.headers["Authorization"] = token.map { "Bearer \($0)" }
    // Text can always be encoded.
    if let fields { request.body = try! JSONEncoder().encode(fields) }
    let (response, body) = try await receive(request)
    if let error = TrackerError(status: response.status, retryAfter: response.headers["Retry-After"]) {
      if error == .signedOut { session.reject(token) }
      throw error
    }
    return (response.status, Reply(etag: response.headers["ETag"], body: body))
  }

  /// Receives a response with its body, unless the time for that is over.
  private func receive(_ request: HTTPRequest) async throws(TrackerError) -> (HTTPResponse, Data) {
    try await withTaskGroup { group in
      group.addTask { await self.exchange(request) }
      group.addTask {
        // Ends early only if the exchange has ended.
        try? await Task.sleep(for: request.timeout)
        return .failure(.noReply)
      }
      defer { group.cancelAll() }
      return await group.next() ?? .failure(.noReply)
    }.get()
  }

  private func exchange(_ request: HTTPRequest) async -> Result<(HTTPResponse, Data), TrackerError> {
    do throws(URLError) {
      let response = try await transport.send(request)
      var body = Data()
      for try await chunk in response.body { body.append(chunk) }
      return .success((response, body))
    } catch {
      return .failure(error.impliesUnsentRequest ? .offline : .noReply)
    }
  }
}

extension HTTPClient.Reply {
  /// Decodes the body; throws ``TrackerError/noReply`` if it can't be read.
  func decode<Value: Decodable>(_ type: Value.Type = Value.self) throws(TrackerError) -> Value {
    do {
      return try JSONDecoder().decode(type, from: body)
    } catch {
      throw .noReply
    }
  }
}
