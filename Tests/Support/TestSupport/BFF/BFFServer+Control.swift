internal import Foundation

extension BFFServer {
  /// A request the server received.
  package struct Request: Decodable, Sendable {
    package let operation: String?
    package let variables: [String: Variable]
    /// With names in lower case.
    package let headers: [String: String]
    package let idempotencyKey: String?
    /// What it came to in the server; nil if it was not executed, or not yet.
    package let effect: Effect?
    /// What the client saw: `answered`, `client-went-away`, `server-stopped`, or the name of a fault; nil while it is
    /// under way.
    package let outcome: String?
    /// How often the server executed it.
    package let executions: Int
  }

  /// What a request came to in the server.
  package enum Effect: String, Decodable, Sendable {
    case read, applied, replayed, refused
  }

  /// The value of a GraphQL variable.
  package enum Variable: Decodable, Equatable, Sendable, ExpressibleByStringLiteral, ExpressibleByBooleanLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByNilLiteral
  {
    case null
    case bool(Bool)
    case int(Int)
    case string(String)

    package init(nilLiteral: ()) { self = .null }
    package init(stringLiteral value: String) { self = .string(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(integerLiteral value: Int) { self = .int(value) }

    package init(from decoder: any Decoder) throws {
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
  package struct Fault: Encodable, Sendable {
    package var fault: String
    package var count: Int
    package var value: Int?
    package var delay: Double?
    package var size: Int?
    package var gate: String?

    package init(
      fault: String, count: Int = 1, value: Int? = nil, delay: Double? = nil, size: Int? = nil, gate: String? = nil
    ) {
      self.fault = fault
      self.count = count
      self.value = value
      self.delay = delay
      self.size = size
      self.gate = gate
    }
  }

  /// Spoils the next answers.
  package func arm(_ fault: Fault) async throws {
    _ = try await control.post("faults", fault)
  }

  /// The requests received so far, in order.
  ///
  /// - Parameters:
  ///   - count: Waits until so many have come.
  ///   - settled: Waits until so many have an outcome.
  ///   - left: Waits until the clients of so many have left before their reply.
  package func received(count: Int = 0, settled: Int = 0, left: Int = 0) async throws -> [Request] {
    let query = [("count", count), ("settled", settled), ("left", left)].map { name, value in
      URLQueryItem(name: name, value: "\(value)")
    }
    return try JSONDecoder().decode([Request].self, from: await control.get("requests", query: query))
  }

  /// Forgets the requests received so far.
  package func clearReceived() async throws {
    try await control.delete("requests")
  }

  /// Returns once so many requests wait at a gate, held by the faults `hold` and `hold-after`.
  package func waits(at gate: String, count: Int = 1) async throws {
    let query = [URLQueryItem(name: "gate", value: gate), URLQueryItem(name: "waiting", value: "\(count)")]
    _ = try await control.get("gates", query: query)
  }

  /// Lets the requests that wait at a gate pass, and those that come to it later; returns how many waited.
  @discardableResult
  package func open(gate: String) async throws -> Int {
    struct Reply: Decodable {
      let passed: Int
    }
    return try JSONDecoder().decode(Reply.self, from: await control.post("gates", ["open": gate])).passed
  }

  /// Puts a new moment at the head of a user's timeline.
  package func insertMoment(id: String, title: String? = nil, userID: String) async throws {
    var body = ["id": id, "userID": userID]
    body["title"] = title
    _ = try await control.post("moments", body)
  }

  /// Refuses connections, and closes those that wait for a request; requests under way go on.
  package func refuseConnections() async throws {
    try await control.refuseConnections()
  }

  /// Accepts connections again.
  package func acceptConnections() async throws {
    try await control.acceptConnections()
  }
}
