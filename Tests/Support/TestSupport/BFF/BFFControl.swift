internal import Foundation

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// A client for the control endpoints of the GraphQL server; see `Tests/Support/bff/README.md`.
actor BFFControl {
  private let ownURL: URL
  /// The URL for control requests while the server refuses connections.
  private var otherURL: URL?

  /// - Parameter url: The URL of the GraphQL endpoint.
  init(url: URL) {
    ownURL = url.deletingLastPathComponent()
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
    otherURL = try JSONDecoder().decode(Reply.self, from: await send("POST", "refuse")).control
  }

  func acceptConnections() async throws {
    _ = try await send("POST", "accept")
    otherURL = nil
  }

  private func send(
    _ method: String, _ path: String, query: [URLQueryItem] = [], body: Data? = nil
  ) async throws -> Data {
    var url = (otherURL ?? ownURL).appending(path: "control/\(path)")
    if !query.isEmpty { url.append(queryItems: query) }
    var request = URLRequest(url: url)
    request.httpMethod = method
    request.httpBody = body
    let (data, response) = try await Self.session.data(for: request)
    guard (response as? HTTPURLResponse)?.statusCode == 200 else {
      throw Refused(request: "\(method) \(path)", answer: String(decoding: data, as: UTF8.self))
    }
    return data
  }

  private static let session: URLSession = {
    let configuration = URLSessionConfiguration.ephemeral
    // A waiting request must not block the request that it waits for.
    configuration.httpMaximumConnectionsPerHost = 100
    // Longer than the server's own timeout, because the server's error says which condition wasn't met.
    configuration.timeoutIntervalForRequest = 330
    return URLSession(configuration: configuration)
  }()

  struct Refused: Error {
    let request: String
    let answer: String
  }
}
