internal import Foundation

extension BFFServer {
  /// A request that the server received.
  package struct Request: Decodable, Sendable {
    package let operation: String?
    package let variables: [String: Variable]
    /// The headers, with lowercase names.
    package let headers: [String: String]
    package let idempotencyKey: String?
    /// The effect of the request on the server; `nil` until the server executes or refuses it, or replays a reply.
    package let effect: Effect?
    /// The outcome for the client: `answered`, `client-went-away`, `server-stopped`, or the name of a fault; `nil`
    /// while the request is in flight.
    package let outcome: String?
    /// The number of times that the server executed the request; the fault `duplicate` can make it 2.
    package let executions: Int
  }

  /// The effect of a request on the server.
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

  /// A fault in the server's responses; see `Tests/Support/bff/README.md`.
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

  /// Arms a fault for the next requests, after the faults that are already armed.
  package func arm(_ fault: Fault) async throws {
    _ = try await control.post("faults", fault)
  }

  /// Waits until the given conditions are met, and returns the requests received so far in the order of their arrival.
  ///
  /// - Parameters:
  ///   - count: The number of requests that must have arrived.
  ///   - settled: The number of requests that must have an outcome.
  ///   - disconnected: The number of requests whose outcome must be `client-went-away`.
  package func received(count: Int = 0, settled: Int = 0, disconnected: Int = 0) async throws -> [Request] {
    let query = [("count", count), ("settled", settled), ("disconnected", disconnected)].map { name, value in
      URLQueryItem(name: name, value: "\(value)")
    }
    return try JSONDecoder().decode([Request].self, from: await control.get("requests", query: query))
  }

  /// Deletes the records of the requests received so far.
  package func clearReceived() async throws {
    try await control.delete("requests")
  }

  /// Waits until at least `count` requests with the fault `hold` or `hold-after` wait at a gate.
  package func waits(at gate: String, count: Int = 1) async throws {
    let query = [URLQueryItem(name: "gate", value: gate), URLQueryItem(name: "waiting", value: "\(count)")]
    _ = try await control.get("gates", query: query)
  }

  /// Opens a gate for the requests that wait at it and for all later ones, and returns how many waited.
  @discardableResult
  package func open(gate: String) async throws -> Int {
    struct Reply: Decodable {
      let passed: Int
    }
    return try JSONDecoder().decode(Reply.self, from: await control.post("gates", ["open": gate])).passed
  }

  /// Inserts a new moment at the head of a user's timeline.
  package func insertMoment(id: String, title: String? = nil, userID: String) async throws {
    var body = ["id": id, "userID": userID]
    body["title"] = title
    _ = try await control.post("moments", body)
  }

  /// Refuses new connections and closes idle ones; requests in flight continue.
  package func refuseConnections() async throws {
    try await control.refuseConnections()
  }

  /// Accepts connections again.
  package func acceptConnections() async throws {
    try await control.acceptConnections()
  }
}
