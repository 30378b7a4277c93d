#if PostgreSQL
  package import DataStore
  internal import Foundation

  /// A database schema for one test, which is removed when the object is released.
  package final class PostgreSQLPlace: Sendable {
    /// The address of the tests' server: `MOMENTS_POSTGRESQL` in the environment, which
    /// `Tests/Support/postgresql/cluster` prints.
    package static let server = ProcessInfo.processInfo.environment["MOMENTS_POSTGRESQL"]

    /// Whether the tests of the store are skipped, because there is no server and none is required.
    package static var isMissing: Bool {
      server == nil && ProcessInfo.processInfo.environment["MOMENTS_REQUIRE_POSTGRESQL"] != "1"
    }

    private struct NoServer: Error, CustomStringConvertible {
      var description: String { "MOMENTS_POSTGRESQL names no server." }
    }

    package let schema = "test_" + UUID().uuidString.lowercased().replacing("-", with: "")
    package let address: String

    /// Creates a schema.
    ///
    /// - Parameters:
    ///   - server: The address of the server; `nil` for the server of the tests.
    ///   - options: Further options of the server for each connection, such as `-cdefault_tablespace=small`.
    package init(server: String? = nil, options: String = "") throws {
      guard let server = server ?? Self.server else { throw NoServer() }
      address = "\(server) application_name=\(schema) options='-csearch_path=\(schema) \(options)'"
      try PostgreSQLConnection(server, timeout: .seconds(5)).run(script: "CREATE SCHEMA \(schema)")
    }

    deinit {
      // A schema that remains doesn't affect other tests.
      _ = try? connection().run(script: "SET client_min_messages = warning; DROP SCHEMA \(schema) CASCADE")
    }

    /// Opens a connection, as another program does.
    package func connection() throws -> PostgreSQLConnection {
      try PostgreSQLConnection(address, timeout: .seconds(5))
    }

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - timeout: The timeout of the store's calls.
    ///   - host: The host to connect to; `nil` for the server's own.
    package func store(timeout: Duration = .seconds(5), host: String? = nil) -> PostgreSQLStore {
      PostgreSQLStore(address: address + (host.map { " host=\($0)" } ?? ""), timeout: timeout)
    }

    /// Creates a role that may read and change the rows of the existing tables, but doesn't own them.
    ///
    /// The caller removes it with ``removeRole(_:)``.
    package func createRole() throws -> String {
      let role = "role_" + schema
      try connection().run(
        script: """
          CREATE ROLE \(role) LOGIN;
          GRANT USAGE ON SCHEMA \(schema) TO \(role);
          GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \(schema) TO \(role);
          GRANT ALL ON ALL SEQUENCES IN SCHEMA \(schema) TO \(role)
          """)
      return role
    }

    /// Removes a role.
    package func removeRole(_ role: String) {
      // A role that remains doesn't affect other tests.
      _ = try? connection().run(script: "DROP OWNED BY \(role); DROP ROLE \(role)")
    }

    /// Calls `body` while a connection has the role of ``createRole()``.
    package func withOtherRole(on connection: PostgreSQLConnection, _ body: () throws -> Void) throws {
      let role = try createRole()
      defer { removeRole(role) }
      try connection.run(script: "SET ROLE \(role)")
      defer { _ = try? connection.run(script: "RESET ROLE") }
      try body()
    }
  }
#endif
