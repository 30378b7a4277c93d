import Foundation
import GraphQLClient
import IssueTracker

/// The tracker of `Server/tracker.py`, in a process of its own.
actor TrackerServer {
  /// A change that the server has applied.
  struct Change: Decodable {
    let key: String
    let method: String
    let path: String
    let body: [String: String]
  }

  private struct Changes: Decodable {
    let changes: [Change]
  }

  struct FailedRequest: Error {
    let path: String
    let status: Int
  }

  let url: URL
  /// A client whose requests never fail.
  nonisolated let admin: TrackerClient
  private let journal: String
  private let tokenLifetime: Double
  private var program: Program
  private let transport = PlatformTransport()

  /// Starts a server with the changes of a journal, and waits until it accepts connections.
  ///
  /// - Parameters:
  ///   - journal: The file of the changes.
  ///   - tokenLifetime: The seconds after which a token expires.
  init(journal: URL, tokenLifetime: Double = 3600) async throws {
    self.journal = journal.path(percentEncoded: false)
    self.tokenLifetime = tokenLifetime
    (program, url) = try await Self.start(self.journal, port: 0, tokenLifetime)
    admin = TrackerClient(server: url)
    admin.session.signIn(token: "admin")
  }

  /// Kills the server with `SIGKILL`, and starts it again on the same port.
  func restart() async throws {
    await program.kill()
    (program, _) = try await Self.start(journal, port: url.port ?? 0, tokenLifetime)
  }

  func stop() async {
    await program.kill()
  }

  private static func start(
    _ journal: String, port: Int, _ tokenLifetime: Double
  ) async throws -> (Program, URL) {
    let script = URL(filePath: #filePath).appending(path: "../../../../Server/tracker.py").standardizedFileURL
    var program = try Program(
      "/usr/bin/env",
      [
        "python3", script.path(percentEncoded: false), journal, "--port", "\(port)", "--token-lifetime",
        "\(tokenLifetime)",
      ])
    let words = await program.line()?.split(separator: " ") ?? []
    guard let address = words.last, let url = URL(string: String(address)) else {
      throw CocoaError(.featureUnsupported, userInfo: [NSLocalizedDescriptionKey: "The server needs Python 3.9."])
    }
    return (program, url)
  }

  // MARK: - Control

  /// Lets a part of the requests of users fail.
  func setFaults(rate: Double, seed: UInt64) async throws {
    try await control("POST", "faults", #"{"rate": \#(rate), "seed": \#(seed)}"#)
  }

  /// Lets the next request of a user fail.
  func arm(_ fault: String) async throws {
    try await control("POST", "faults", #"{"arm": "\#(fault)"}"#)
  }

  /// Makes the tokens of all users invalid.
  func signOutAll() async throws {
    try await control("POST", "sign-out")
  }

  /// Returns the applied changes in order.
  func changes() async throws -> [Change] {
    try JSONDecoder().decode(Changes.self, from: await control("GET", "changes")).changes
  }

  /// Returns a line for each request for a change whose line contains a text, in the order in which they were handled.
  func requests(containing text: String) throws -> [String] {
    let lines = try String(contentsOf: URL(filePath: journal + ".requests"), encoding: .utf8).split(separator: "\n")
    return lines.map(String.init).filter { $0.contains(text) }
  }

  @discardableResult
  private func control(_ method: String, _ path: String, _ body: String = "") async throws -> Data {
    let request = HTTPRequest(
      url: url.appending(path: "admin/\(path)"), method: method, headers: ["Authorization": "Bearer admin"],
      body: Data(body.utf8))
    let response = try await transport.send(request)
    var data = Data()
    for try await chunk in response.body { data.append(chunk) }
    guard (200..<300).contains(response.status) else { throw FailedRequest(path: path, status: response.status) }
    return data
  }
}
