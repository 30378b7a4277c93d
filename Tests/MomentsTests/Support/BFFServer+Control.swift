import Foundation

extension BFFServer {
  /// A request the server received.
  struct Request: Decodable, Sendable {
    let operation: String?
    let variables: [String: Variable]
    /// With names in lower case.
    let headers: [String: String]
    let idempotencyKey: String?
    /// What it came to in the server; nil if it was not executed, or not yet.
    let effect: Effect?
    /// What the client saw: `answered`, `client-went-away`, `server-stopped`, or the name of a fault; nil while it is
    /// under way.
    let outcome: String?
    /// How often the server executed it.
    let executions: Int
  }

  /// What a request came to in the server.
  enum Effect: String, Decodable, Sendable {
    case read, applied, replayed, refused
  }

  /// The value of a GraphQL variable.
  enum Variable: Decodable, Equatable, Sendable, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByNilLiteral
  {
    case null
    case bool(Bool)
    case int(Int)
    case string(String)

    init(nilLiteral: ()) { self = .null }
    init(stringLiteral value: String) { self = .string(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }
    init(integerLiteral value: Int) { self = .int(value) }

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .null
        return
      }
      do {
        self = .bool(try container.decode(Bool.self))
      } catch DecodingError.typeMismatch {
        do {
          self = .int(try container.decode(Int.self))
        } catch DecodingError.typeMismatch {
          self = .string(try container.decode(String.self))
        }
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
    var gate: String?
  }

  /// Spoils the next answers.
  func arm(_ fault: Fault) async throws {
    _ = try await control.post("faults", fault)
  }

  /// The requests received so far, in order.
  ///
  /// - Parameters:
  ///   - count: Waits until so many have come.
  ///   - settled: Waits until so many have an outcome.
  ///   - left: Waits until the clients of so many have left before their reply.
  func received(count: Int = 0, settled: Int = 0, left: Int = 0) async throws -> [Request] {
    let query = [("count", count), ("settled", settled), ("left", left)].map { name, value in
      URLQueryItem(name: name, value: "\(value)")
    }
    return try JSONDecoder().decode([Request].self, from: await control.get("requests", query: query))
  }

  /// Forgets the requests received so far.
  func clearReceived() async throws {
    try await control.delete("requests")
  }

  /// Returns once so many requests wait at a gate, held by the faults `hold` and `hold-after`.
  func waits(at gate: String, count: Int = 1) async throws {
    let query = [URLQueryItem(name: "gate", value: gate), URLQueryItem(name: "waiting", value: "\(count)")]
    _ = try await control.get("gates", query: query)
  }

  /// Lets the requests that wait at a gate pass, and those that come to it later; returns how many waited.
  @discardableResult
  func open(gate: String) async throws -> Int {
    struct Reply: Decodable {
      let passed: Int
    }
    return try JSONDecoder().decode(Reply.self, from: await control.post("gates", ["open": gate])).passed
  }

  /// Puts a new moment at the head of a user's timeline.
  func insertMoment(id: String, title: String? = nil, userID: String) async throws {
    var body = ["id": id, "userID": userID]
    body["title"] = title
    _ = try await control.post("moments", body)
  }

  /// Refuses connections, and closes those that wait for a request; requests under way go on.
  func refuseConnections() async throws {
    try await control.refuseConnections()
  }

  /// Accepts connections again.
  func acceptConnections() async throws {
    try await control.acceptConnections()
  }
}
