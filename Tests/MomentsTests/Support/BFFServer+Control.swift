import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

extension BFFServer {
  /// A request the server received.
  struct Request: Decodable, Sendable {
    let operation: String?
    let variables: [String: Variable]
    /// With names in lower case.
    let headers: [String: String]
    let idempotencyKey: String?
    /// What became of it: `answered`, `client-went-away`, or the name of a fault; nil while it is under way.
    let outcome: String?
    /// How often the server executed it.
    let executions: Int
  }

  /// The value of a GraphQL variable.
  enum Variable: Decodable, Equatable, Sendable, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral {
    case bool(Bool)
    case string(String)

    init(stringLiteral value: String) { self = .string(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      do {
        self = .bool(try container.decode(Bool.self))
      } catch DecodingError.typeMismatch {
        self = .string(try container.decode(String.self))
      }
    }
  }

  /// A way for the server to spoil its answers.
  struct Fault: Encodable, Sendable {
    var fault: String
    var count = 1
    var value: Int?
    var delay: Double?
    var size: Int?
  }

  /// Spoils the next answers.
  func arm(_ fault: Fault) async throws {
    _ = try await control("faults", body: JSONEncoder().encode(fault))
  }

  /// The requests received so far, in order.
  func requests() async throws -> [Request] {
    try JSONDecoder().decode([Request].self, from: await control("requests"))
  }

  /// Asks for the requests until they satisfy `condition`.
  ///
  /// The server has no way to call back, so this asks again and again; it gives up with an error at a deadline.
  func requests(until condition: ([Request]) -> Bool) async throws -> [Request] {
    let deadline = ContinuousClock.now + .seconds(20)
    while true {
      let requests = try await requests()
      if condition(requests) { return requests }
      guard ContinuousClock.now < deadline else { throw UnmetCondition(requests: requests) }
    }
  }

  private func control(_ path: String, body: Data? = nil) async throws -> Data {
    var request = URLRequest(url: url.deletingLastPathComponent().appending(path: "control/\(path)"))
    request.httpMethod = body == nil ? "GET" : "POST"
    request.httpBody = body
    let (data, response) = try await Self.controlSession.data(for: request)
    guard (response as? HTTPURLResponse)?.statusCode == 200 else {
      throw RefusedControl(answer: String(decoding: data, as: UTF8.self))
    }
    return data
  }

  private static let controlSession = URLSession(configuration: .ephemeral)

  struct UnmetCondition: Error {
    let requests: [Request]
  }

  struct RefusedControl: Error {
    let answer: String
  }
}
