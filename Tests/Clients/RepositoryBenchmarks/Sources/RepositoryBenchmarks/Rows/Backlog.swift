internal import BenchmarkKit
internal import Repository

/// Many changes of many keys, made while the repository is suspended: a relaunch, the list of them, and their delivery
/// with and without an observer of the list.
struct Backlog: Sendable {
  /// The number of tasks that make the changes.
  private static let taskCount = 32

  private let environment: Environment

  init(_ environment: Environment) {
    self.environment = environment
  }

  /// The comparisons with different numbers of changes, each of half as many keys.
  var comparisons: [Comparison<Setting>] {
    Set([1_000, 10_000].map { environment.options.scaled($0) }).sorted().map { count in
      Comparison(
        Setting(row: .backlog, variant: "\(count) changes of \(max(count / 2, 1)) keys"),
        contestants: [
          contestant("SyncedRepository", count, isListObserved: false),
          contestant("SyncedRepository, list observed", count, isListObserved: true),
        ])
    }
  }

  private func contestant(_ label: String, _ count: Int, isListObserved: Bool) -> Contestant {
    let keys = (0..<max(count / 2, 1)).map { "\($0)" }
    let changesByTask = (0..<Self.taskCount).map { task in
      stride(from: task, to: count, by: Self.taskCount).map {
        (key: keys[$0 % keys.count], mutation: Raise(serial: $0 + 1))
      }
    }
    return Contestant(label: label, count: count) {
      let server = Server.counters()
      return try await environment.withPlace(server, keys: keys) { place in
        let making = try await Span.measure {
          let system = SyncedSystem(server, place.makeStore())
          // Otherwise each lane would make attempts that fail, and store them.
          await system.suspend()
          try await system.perform(changesByTask)
        }
        server.setReachable(false)
        let system = SyncedSystem(server, place.makeStore())
        let listing = try await Span.measure {
          guard try await system.listedCount() == count else {
            throw BenchmarkError.wrongValue(system: label, key: "the list")
          }
        }
        let observer = isListObserved ? Task { await system.observeList() } : nil
        server.setReachable(true)
        let draining = try await Span.measure { try await system.deliverAll() }
        observer?.cancel()
        try await environment.check(place, server, keys: keys, label)
        return making.each("made while suspended", of: count) + listing.each("relaunch until listed", of: count)
          + draining.each("drain", of: count)
      }
    }
  }
}
