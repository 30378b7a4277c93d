#if PostgreSQL
  package import DataStore
  internal import Foundation

  /// A test's database schema, which is removed when the object is released.
  package final class PostgreSQLPlace: Sendable {
    /// The address of the tests' server, from `MOMENTS_POSTGRESQL` in the environment.
    ///
    /// `Tests/Support/postgresql/cluster` starts a server and prints its address.
    package static let server = ProcessInfo.processInfo.environment["MOMENTS_POSTGRESQL"]

    /// Whether the tests of ``PostgreSQLStore`` are skipped, because there is no server.
    package static var isMissing: Bool { server == nil }

    private struct NoServer: Error, CustomStringConvertible {
      var description: String { "MOMENTS_POSTGRESQL is not set." }
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
      try PostgreSQLConnection(server, timeout: .seconds(60)).run(script: "CREATE SCHEMA \(schema)")
    }

    deinit {
      // A schema that remains doesn't affect other tests.
      _ = try? connection().run(script: "SET client_min_messages = warning; DROP SCHEMA \(schema) CASCADE")
    }

    /// Opens a connection that doesn't belong to a store, as another program would.
    package func connection() throws -> PostgreSQLConnection {
      try PostgreSQLConnection(address, timeout: .seconds(60))
    }

    /// Opens a store.
    ///
    /// - Parameters:
    ///   - timeout: The timeout of the store's calls, which is long by default, because the machine may be busy.
    ///   - host: The host to connect to; `nil` for the host in ``address``.
    package func store(timeout: Duration = .seconds(60), host: String? = nil) -> PostgreSQLStore {
      PostgreSQLStore(address: address + (host.map { " host=\($0)" } ?? ""), timeout: timeout)
    }

    /// Creates a role that may read and change the rows of the existing tables, but doesn't own the tables.
    ///
    /// The caller must remove the role with ``removeRole(_:)``.
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

    /// Calls `body` while a connection uses a new role from ``createRole()``, then resets the connection's role and
    /// removes the new one.
    package func withOtherRole(on connection: PostgreSQLConnection, _ body: () throws -> Void) throws {
      let role = try createRole()
      defer { removeRole(role) }
      try connection.run(script: "SET ROLE \(role)")
      defer { _ = try? connection.run(script: "RESET ROLE") }
      try body()
    }
  }
#endif
