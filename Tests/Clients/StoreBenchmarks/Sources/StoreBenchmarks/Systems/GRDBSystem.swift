internal import Dispatch
internal import Foundation
internal import GRDB

/// A table of keys and JSON in GRDB, as durable as the stores of Moments.
struct GRDBSystem: StorageSystem {
  private let pool: DatabasePool
  private let queue = DispatchQueue(label: "GRDBSystem.observers")

  init(in folder: URL) throws {
    pool = try DatabasePool.durable(in: folder)
    try pool.write { database in
      try database.execute(sql: "CREATE TABLE IF NOT EXISTS entry (key TEXT PRIMARY KEY, value BLOB NOT NULL)")
    }
  }

  func save(_ timeline: Timeline, as id: String) async throws {
    let value = try JSONEncoder().encode(timeline)
    try await pool.write { try Self.save(value, as: id, in: $0) }
  }

  func save(_ timelines: [(id: String, timeline: Timeline)]) async throws {
    let entries = try timelines.map { (id: $0.id, value: try JSONEncoder().encode($0.timeline)) }
    try await pool.write { database in
      for entry in entries { try Self.save(entry.value, as: entry.id, in: database) }
    }
  }

  func load(_ id: String) async throws -> Timeline? {
    let value = try await pool.read { try Self.fetch(id, in: $0) }
    return try value.map(Self.decode)
  }

  func observe(_ id: String) -> Observation<Timeline> {
    observe { try Self.fetch(id, in: $0).map(Self.decode) }
  }

  func observeAll() -> Observation<[Timeline]> {
    observe { database in
      let statement = try database.cachedStatement(sql: "SELECT value FROM entry")
      return try Data.fetchAll(statement).map(Self.decode)
    }
  }

  func close() throws {
    try pool.close()
  }

  private func observe<Value>(_ fetch: @escaping @Sendable (Database) throws -> Value?) -> Observation<Value> {
    let arrivalSlot = HandOffSlot<Observation<Value>.Arrival>()
    let cancellable = ValueObservation.trackingConstantRegion(fetch).start(
      in: pool, scheduling: .async(onQueue: queue),
      onError: { arrivalSlot.put(.failure(BenchmarkError.observationFailed("\($0)"))) },
      onChange: { if let value = $0 { arrivalSlot.put(.success(.init(value))) } })
    return Observation(arrivalSlot: arrivalSlot, cancel: { cancellable.cancel() })
  }

  private static func save(_ value: Data, as id: String, in database: Database) throws {
    let statement = try database.cachedStatement(
      sql: """
        INSERT INTO entry (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value
        """)
    try statement.execute(arguments: [id, value])
  }

  private static func fetch(_ id: String, in database: Database) throws -> Data? {
    let statement = try database.cachedStatement(sql: "SELECT value FROM entry WHERE key = ?")
    return try Data.fetchOne(statement, arguments: [id])
  }

  private static func decode(_ value: Data) throws -> Timeline {
    try JSONDecoder().decode(Timeline.self, from: value)
  }
}

extension DatabasePool {
  /// Opens the database of a folder in WAL mode, with each commit synchronized.
  ///
  /// For WAL mode, GRDB sets `synchronous = NORMAL`, with which a loss of power can undo the last commits. So this
  /// method sets `FULL` afterwards, and verifies the setting.
  static func durable(in folder: URL) throws -> DatabasePool {
    let file = folder.appending(path: "grdb.sqlite", directoryHint: .notDirectory)
    let pool = try DatabasePool(path: file.path(percentEncoded: false))
    try pool.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA synchronous = FULL")
      let mode = try Int.fetchOne(database, sql: "PRAGMA synchronous")
      // 2 is `FULL`.
      guard mode == 2 else { throw BenchmarkError.notFullySynchronous(mode: mode) }
    }
    return pool
  }
}
