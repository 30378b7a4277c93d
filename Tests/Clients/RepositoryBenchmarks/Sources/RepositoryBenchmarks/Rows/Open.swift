internal import BenchmarkKit
internal import Repository

/// The time from the creation of a store and a system until an observer receives the stored value with pending changes
/// applied.
struct Open: Sendable {
  /// The number of openings in a run.
  private static let openingCount = 3
  /// The number of tasks that make the queued changes.
  private static let taskCount = 32

  private let environment: Environment

  init(_ environment: Environment) {
    self.environment = environment
  }

  /// The comparisons with different numbers of queued changes.
  var comparisons: [Comparison<Setting>] {
    [0, environment.options.scaled(2_000)].map { queuedCount in
      Comparison(
        Setting(row: .open, variant: "\(queuedCount) queued"),
        contestants: [
          contestant(SyncedSystem.self, queuedCount), contestant(HandWrittenRepository<Raise>.self, queuedCount),
        ])
    }
  }

  private func contestant<System: RepositorySystem<Raise>>(_ type: System.Type, _ queuedCount: Int) -> Contestant {
    Contestant(label: type.label, count: Self.openingCount) {
      let server = Server.counters()
      return try await environment.withPlace(server) { place in
        server.setReachable(false)
        try await queueChanges(queuedCount, with: System(server, place.makeStore()))
        var times = OperationTimes()
        for _ in 0..<Self.openingCount {
          let start = ContinuousClock.now
          let system = System(server, place.makeStore())
          // The queued changes raise the counter to their number.
          guard try await firstSerial(of: system) == queuedCount else {
            throw BenchmarkError.wrongValue(system: type.label, key: "0")
          }
          times.add(start, .now)
          if queuedCount > 0 { await system.waitForFailedAttempt() }
        }
        if queuedCount > 0 {
          server.setReachable(true)
          try await System(server, place.makeStore()).deliverAll()
        }
        try await environment.check(place, server, type.label)
        return [times.reading("first value")]
      }
    }
  }

  private func queueChanges(_ queuedCount: Int, with system: some RepositorySystem<Raise>) async throws {
    guard queuedCount > 0 else { return }
    let changesByTask = (0..<Self.taskCount).map { task in
      stride(from: task, to: queuedCount, by: Self.taskCount).map { (key: "0", mutation: Raise(serial: $0 + 1)) }
    }
    try await system.perform(changesByTask)
    await system.waitForFailedAttempt()
  }

  private func firstSerial<System: RepositorySystem<Raise>>(of system: System) async throws -> Int {
    for await counter in try await system.values(of: "0") { return counter.serial }
    throw BenchmarkError.ended(system: System.label)
  }
}
