#if PostgreSQL
  import Foundation
  import Testing

  @testable import DataStore

  /// A database schema for one test, which is removed when the test ends.
  final class PostgreSQLPlace: Sendable {
    /// The server of the tests: the environment's `MOMENTS_POSTGRESQL`, as `Tests/Support/postgresql/cluster` prints it.
    static let server = ProcessInfo.processInfo.environment["MOMENTS_POSTGRESQL"]

    /// Whether the tests of the store are skipped, because there is no server and none is required.
    static var isMissing: Bool {
      server == nil && ProcessInfo.processInfo.environment["MOMENTS_REQUIRE_POSTGRESQL"] != "1"
    }

    private let schema = "test_" + UUID().uuidString.lowercased().replacing("-", with: "")
    let address: String

    init() throws {
      let server = try #require(Self.server, "MOMENTS_POSTGRESQL names no server.")
      address = "\(server) application_name=\(schema) options='-csearch_path=\(schema)'"
      try PostgreSQLConnection(server, timeout: .seconds(5)).run(script: "CREATE SCHEMA \(schema)")
    }

    deinit {
      // A schema that remains doesn't affect other tests.
      _ = try? connection().run(script: "SET client_min_messages = warning; DROP SCHEMA \(schema) CASCADE")
    }

    /// Opens a connection, as another program does.
    func connection() throws -> PostgreSQLConnection { try PostgreSQLConnection(address, timeout: .seconds(5)) }

    func backend(timeout: Duration = .seconds(5)) -> PostgreSQLBackend {
      PostgreSQLBackend(address: address, timeout: timeout)
    }

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - timeout: The timeout of the store's calls.
    ///   - host: The host to connect to; `nil` for the server's own.
    func store(timeout: Duration = .seconds(5), host: String? = nil) -> PostgreSQLStore {
      PostgreSQLStore(address: address + (host.map { " host=\($0)" } ?? ""), timeout: timeout)
    }

    /// The folder of the server's socket; `nil` if the server isn't reached by one.
    var serverFolder: String? {
      address.split(separator: " ").first { $0.hasPrefix("host=/") }.map { String($0.dropFirst(5)) }
    }

    /// Replaces the stored bytes of a name by corrupt ones.
    func corrupt(_ name: String) throws {
      try connection().run(
        "UPDATE datastore_value SET bytes = $1 WHERE name = $2", .bytes(Data("spoiled".utf8)), .text(name))
    }

    /// Waits until an SQL expression is true.
    func waitUntil(_ condition: String) async throws {
      let connection = try connection()
      while try connection.first("SELECT \(condition)", read: { $0.bool(0) }) != true {
        try await Task.sleep(for: .milliseconds(10))
      }
    }

    /// Terminates all other connections to the schema, as an administrator does, and waits until they have ended.
    func endConnections() throws {
      try connection().run(
        script: """
          SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
          WHERE pid <> pg_backend_pid() AND application_name = '\(schema)'
          """)
    }
  }
#endif
