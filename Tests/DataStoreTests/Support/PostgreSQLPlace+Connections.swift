#if PostgreSQL
  import Foundation
  import TestSupport

  @testable import DataStore

  extension PostgreSQLPlace {
    func backend(timeout: Duration = .seconds(60)) -> PostgreSQLBackend {
      PostgreSQLBackend(address: address, timeout: timeout)
    }

    /// The folder of the server's Unix-domain socket; `nil` if the address names none.
    var serverFolder: String? {
      address.split(separator: " ").first { $0.hasPrefix("host=/") }.map { String($0.dropFirst("host=".count)) }
    }

    /// Replaces the bytes stored under a name with corrupt ones.
    func corrupt(_ name: String) throws {
      try connection().run(
        "UPDATE datastore_value SET bytes = $1 WHERE name = $2", .bytes(Data("corrupt".utf8)), .text(name))
    }

    /// Waits until an SQL expression is true.
    func waitUntil(_ condition: String) async throws {
      let connection = try connection()
      while try connection.first("SELECT \(condition)", read: { $0.bool(0) }) != true {
        try await Task.sleep(for: .milliseconds(10))
      }
    }

    /// Terminates all connections to the schema, as an administrator may do.
    ///
    /// The exception is the connection that this method opens. The method waits until the others have ended, at most 10
    /// seconds for each.
    func endConnections() throws {
      try connection().run(
        script: """
          SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
          WHERE pid <> pg_backend_pid() AND application_name = '\(schema)'
          """)
    }
  }
#endif
