internal import BenchmarkKit
internal import DataStore
internal import Foundation

/// Comparisons of a store's saves to a PostgreSQL server with a loop of libpq calls to the same server.
struct Server: Sendable {
  static let storeLabel = "PostgreSQLStore"
  static let byHandLabel = "libpq by hand"

  private let options: Options
  private let address: String

  /// Creates the comparisons on the server that the options name, or returns `nil` if they name none.
  init?(_ options: Options) {
    guard let address = options.serverAddress else { return nil }
    (self.options, self.address) = (options, address)
  }

  /// Sequential saves of one key.
  var saves: Comparison<Setting> {
    let count = options.scaled(200)
    return Comparison(
      Setting(row: .serverSave),
      contestants: [
        Contestant(label: Self.storeLabel, count: count) { [address] in
          let store = PostgreSQLStore(address: address)
          return try await Self.measureSaves(count) { try await store.save($0, for: Self.key("0")) }
        },
        Contestant(label: Self.byHandLabel, count: count) { [address] in
          let table = try LibPQByHand(address)
          return try await Self.measureSaves(count) { try table.save(JSONEncoder().encode($0), as: "0") }
        },
      ])
  }

  private static func measureSaves(_ count: Int, _ save: (Timeline) async throws -> Void) async throws -> [Reading] {
    var timeline = Timeline()
    var times = OperationTimes()
    // Not measured, because the first use of a statement on a new connection takes longer.
    try await save(timeline)
    for serial in 1...count {
      timeline.serial = serial
      try await times.measure { try await save(timeline) }
    }
    return [times.reading("save")]
  }

  /// Concurrent saves of many keys, or sequential ones with `LibPQByHand`.
  ///
  /// One save precedes the measurement, because the first use of a statement on a new connection takes longer.
  var burst: Comparison<Setting> {
    let count = options.scaled(400)
    let timelines = (0..<count).map { (id: "\($0)", timeline: Timeline(serial: $0, postCount: 1)) }
    return Comparison(
      Setting(row: .serverBurst),
      contestants: [
        Contestant(label: Self.storeLabel, count: count) { [address] in
          let store = PostgreSQLStore(address: address)
          try await store.removeAll(in: Self.collection)
          try await store.save(timelines[0].timeline, for: Self.key("first"))
          let time = try await ContinuousClock().measure {
            try await withThrowingTaskGroup(of: Void.self) { group in
              for (id, timeline) in timelines {
                group.addTask { try await store.save(timeline, for: Self.key(id)) }
              }
              try await group.waitForAll()
            }
          }
          return Self.readings(time, count: count)
        },
        Contestant(label: Self.byHandLabel, count: count) { [address] in
          let table = try LibPQByHand(address)
          try table.save(JSONEncoder().encode(timelines[0].timeline), as: "first")
          let time = try ContinuousClock().measure {
            for (id, timeline) in timelines { try table.save(JSONEncoder().encode(timeline), as: id) }
          }
          return Self.readings(time, count: count)
        },
      ])
  }

  private static func readings(_ time: Duration, count: Int) -> [Reading] {
    [
      Reading(metric: "each save", unit: "µs", value: time.microseconds / Double(count)),
      Reading(metric: "burst", unit: "ms", value: time.milliseconds),
    ]
  }

  private static let collection = "server"

  private static func key(_ id: String) -> StoreKey<Timeline> { StoreKey(collection, id: id) }
}
