internal import BenchmarkKit
internal import Repository

/// The time from the creation of a store and a system until an observer receives the stored value with pending changes
/// applied.
struct Open: Sendable {
  /// The number of openings in a run.
  private static let openings = 3
  private static let makers = 32

  private let environment: Environment

  init(_ environment: Environment) {
    self.environment = environment
  }

  /// The comparisons with different numbers of queued changes.
  var comparisons: [Comparison<Setting>] {
    [0, environment.options.scaled(2_000)].map { queued in
      Comparison(
        Setting(row: .open, part: "\(queued) queued"),
        contestants: [
          contestant(SyncedSystem.self, queued), contestant(HandWrittenRepository<Raise>.self, queued),
        ])
    }
  }

  private func contestant<System: RepositorySystem<Raise>>(_ type: System.Type, _ queued: Int) -> Contestant {
    Contestant(label: type.label, count: Self.openings) {
      let server = Server.counters()
      return try await environment.withPlace(server) { place in
        server.setReachable(false)
        try await prepare(queued, System(server, place.makeStore()))
        var times = OperationTimes()
        for _ in 0..<Self.openings {
          let start = ContinuousClock.now
          let system = System(server, place.makeStore())
          guard try await first(system) == queued else {
            throw BenchmarkError.wrongValue(system: type.label, key: "0")
          }
          times.add(start, .now)
          if queued > 0 { await system.settle() }
        }
        if queued > 0 {
          server.setReachable(true)
          try await System(server, place.makeStore()).deliverAll()
        }
        try await environment.check(place, server, type.label)
        return [times.reading("first value")]
      }
    }
  }

  private func prepare(_ queued: Int, _ system: some RepositorySystem<Raise>) async throws {
    guard queued > 0 else { return }
    let changes = (0..<Self.makers).map { maker in
      stride(from: maker, to: queued, by: Self.makers).map { (key: "0", mutation: Raise(serial: $0 + 1)) }
    }
    try await system.perform(changes)
    await system.settle()
  }

  private func first<System: RepositorySystem<Raise>>(_ system: System) async throws -> Int {
    for await counter in try await system.values(of: "0") { return counter.serial }
    throw BenchmarkError.ended(system: System.label)
  }
}
