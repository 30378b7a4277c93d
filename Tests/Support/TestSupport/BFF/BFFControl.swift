internal import Foundation

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// A client for the control endpoints of the GraphQL server; see `Tests/Support/bff/README.md`.
actor BFFControl {
  private let baseURL: URL
  /// The base URL for control requests while the server refuses connections; `nil` while it accepts them.
  private var baseURLWhileRefusing: URL?

  /// - Parameter url: The URL of the GraphQL endpoint.
  init(url: URL) {
    baseURL = url.deletingLastPathComponent()
  }

  func get(_ path: String, query: [URLQueryItem] = []) async throws -> Data {
    try await send("GET", path, query: query)
  }

  func post(_ path: String, _ body: some Encodable & Sendable) async throws -> Data {
    try await send("POST", path, body: JSONEncoder().encode(body))
  }

  func delete(_ path: String) async throws {
    _ = try await send("DELETE", path)
  }

  func refuseConnections() async throws {
    struct Reply: Decodable {
      let control: URL
    }
    baseURLWhileRefusing = try JSONDecoder().decode(Reply.self, from: await send("POST", "refuse")).control
  }

  func acceptConnections() async throws {
    _ = try await send("POST", "accept")
    baseURLWhileRefusing = nil
  }

  private func send(
    _ method: String, _ path: String, query: [URLQueryItem] = [], body: Data? = nil
  ) async throws -> Data {
    var url = (baseURLWhileRefusing ?? baseURL).appending(path: "control/\(path)")
    if !query.isEmpty { url.append(queryItems: query) }
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.httpBody = body
    let (data, response) = try await Self.session.data(for: request)
    guard (response as? HTTPURLResponse)?.statusCode == 200 else {
      throw FailedRequest(request: "\(method) \(path)", answer: String(decoding: data, as: UTF8.self))
    }
    return data
  }

  private static let session: URLSession = {
    let configuration = URLSessionConfiguration.ephemeral
    // A control request may wait in the server until another one opens a gate, so the two need separate connections.
    configuration.httpMaximumConnectionsPerHost = 100
    // Longer than the server's own timeout, because the server's error says which condition wasn't met.
    configuration.timeoutIntervalForRequest = 330
    return URLSession(configuration: configuration)
  }()

  /// A control request whose reply doesn't have the status 200.
  struct FailedRequest: Error {
    let request: String
    let answer: String
  }
}
