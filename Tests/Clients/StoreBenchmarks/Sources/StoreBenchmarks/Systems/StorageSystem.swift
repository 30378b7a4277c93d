internal import Foundation

/// A durable store of timelines by id, as an app would use it.
protocol StorageSystem: Sendable {
  /// Stores a timeline, and returns once it is durable.
  func save(_ timeline: Timeline, as id: String) async throws

  /// Stores several timelines in one commit or transaction.
  func save(_ timelines: [(id: String, timeline: Timeline)]) async throws

  /// Returns the timeline of an id.
  func load(_ id: String) async throws -> Timeline?

  /// Observes the timeline of an id: the stored one first, then every later one.
  func observe(_ id: String) async throws -> Observation<Timeline>

  /// Observes all timelines: the stored ones first, then at least those that changed.
  func observeAll() async throws -> Observation<[Timeline]>

  /// Closes what the release of the object doesn't.
  func close() throws
}

/// Where an observer puts what it received, until the observation is cancelled.
struct Observation<Value: Sendable>: Sendable {
  /// A value that an observer received, and when it did.
  struct Arrival: Sendable {
    let value: Value
    let instant = ContinuousClock.now

    init(_ value: Value) { self.value = value }
  }

  let arrivals: Mailbox<Arrival>
  let cancel: @Sendable () -> Void

  /// Returns the first arrival whose value fulfils a condition, and drops those before.
  func first(where isExpected: (Value) -> Bool) async throws -> Arrival {
    while true {
      let arrival = try await arrivals.take()
      if isExpected(arrival.value) { return arrival }
    }
  }
}

/// The systems that all rows compare.
enum SystemName: CaseIterable, Sendable {
  case file, sqlite, grdb

  /// How the tables name the system.
  var label: String {
    switch self {
    case .file: "FileStore"
    case .sqlite: "SQLiteStore"
    case .grdb: "GRDB"
    }
  }

  /// Opens what a folder holds, or what it is to hold.
  func open(in folder: URL) throws -> any StorageSystem {
    switch self {
    case .file: StoreSystem(.file, in: folder)
    case .sqlite: StoreSystem(.sqlite, in: folder)
    case .grdb: try GRDBSystem(in: folder)
    }
  }
}
