internal import Foundation

/// A durable store of timelines by id, as an app would use it.
protocol StorageSystem: Sendable {
  /// Stores a timeline, and returns once it is durable.
  func save(_ timeline: Timeline, as id: String) async throws

  /// Stores several timelines in one commit or transaction.
  func save(_ timelines: [(id: String, timeline: Timeline)]) async throws

  /// Returns the timeline of an id.
  func load(_ id: String) async throws -> Timeline?

  /// Observes the timeline of an id: the stored one, then later ones.
  ///
  /// A timeline that isn't taken before the next one arrives is skipped.
  func observe(_ id: String) async throws -> Observation<Timeline>

  /// Observes all timelines: the stored ones first, then after each change either all or only those that changed.
  func observeAll() async throws -> Observation<[Timeline]>

  /// Closes the database connections at once, or does nothing if they close only when the system is released.
  func close() throws
}

/// A running observation, with the newest value that the observer has received.
struct Observation<Value: Sendable>: Sendable {
  /// A value that an observer has received, and the time of its arrival.
  struct Arrival: Sendable {
    let value: Value
    let instant = ContinuousClock.now

    init(_ value: Value) { self.value = value }
  }

  let arrivalSlot: HandOffSlot<Arrival>
  let cancel: @Sendable () -> Void

  /// Returns the first arrival whose value meets a condition, and drops earlier ones.
  func first(where isExpected: (Value) -> Bool) async throws -> Arrival {
    while true {
      let arrival = try await arrivalSlot.take()
      if isExpected(arrival.value) { return arrival }
    }
  }
}

/// The systems that most rows of measurements compare; see ``Row``.
enum SystemName: CaseIterable, Sendable {
  case file, sqlite, grdb

  /// The name of the system in the tables.
  var label: String {
    switch self {
    case .file: "FileStore"
    case .sqlite: "SQLiteStore"
    case .grdb: "GRDB"
    }
  }

  /// Opens the store or database of a folder, or creates it.
  func open(in folder: URL) throws -> any StorageSystem {
    switch self {
    case .file: StoreSystem(.file, in: folder)
    case .sqlite: StoreSystem(.sqlite, in: folder)
    case .grdb: try GRDBSystem(in: folder)
    }
  }
}
