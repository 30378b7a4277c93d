internal import CLibPQ
internal import Foundation

/// A table of names and bytes on a PostgreSQL server, written with one prepared statement and one row per transaction.
final class LibPQByHand {
  private let connection: OpaquePointer

  init(_ address: String) throws {
    guard let connection = PQconnectdb(address) else { throw BenchmarkError.server("out of memory") }
    self.connection = connection
    guard PQstatus(connection) == CONNECTION_OK else {
      throw BenchmarkError.server(String(cString: PQerrorMessage(connection)))
    }
    // Discards notices, such as the one that the table already exists.
    PQsetNoticeProcessor(connection, { _, _ in }, nil)
    try run("CREATE TABLE IF NOT EXISTS by_hand (name text PRIMARY KEY, bytes bytea NOT NULL)")
    try run("TRUNCATE by_hand")
    try check(
      PQprepare(
        connection, "save",
        "INSERT INTO by_hand VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes", 0, nil))
  }

  deinit {
    PQfinish(connection)
  }

  /// Stores bytes under a name, durably.
  func save(_ bytes: Data, as name: String) throws {
    try name.withCString { name in
      try bytes.withUnsafeBytes { bytes in
        let values = [name, bytes.baseAddress?.assumingMemoryBound(to: CChar.self)]
        // Format 0 is text, for which no length is needed, and format 1 is binary.
        try check(PQexecPrepared(connection, "save", 2, values, [0, CInt(bytes.count)], [0, 1], 1))
      }
    }
  }

  private func run(_ sql: String) throws {
    try check(PQexec(connection, sql))
  }

  private func check(_ result: OpaquePointer?) throws {
    defer { PQclear(result) }
    switch PQresultStatus(result) {
    case PGRES_COMMAND_OK, PGRES_TUPLES_OK: return
    default: throw BenchmarkError.server(String(cString: PQerrorMessage(connection)))
    }
  }
}
