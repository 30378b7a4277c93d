internal import BenchmarkKit
internal import Repository

/// Changes that are made while the server can't be reached, and delivered when it can.
struct Drain: Sendable {
  /// The number of tasks that make the changes.
  private static let taskCount = 32

  private let environment: Environment

  init(_ environment: Environment) {
    self.environment = environment
  }

  static func label(_ mutationCount: Int) -> String { "\(mutationCount) mutations" }

  /// The comparisons with different numbers of changes of one key.
  var ofOneKey: [Comparison<Setting>] {
    Set([500, 2_000, 8_000].map { environment.options.scaled($0) }).sorted().map { mutationCount in
      Comparison(
        Setting(row: .drain, variant: Self.label(mutationCount)),
        contestants: contestants(mutationCount: mutationCount, keyCount: 1))
    }
  }

  /// The comparison with changes of 1,000 keys.
  var ofManyKeys: Comparison<Setting> {
    let (mutationCount, keyCount) = (environment.options.scaled(8_000), environment.options.scaled(1_000))
    return Comparison(
      Setting(row: .drainKeys, variant: "\(Self.label(mutationCount)) of \(keyCount) keys"),
      contestants: contestants(mutationCount: mutationCount, keyCount: keyCount))
  }

  private func contestants(mutationCount: Int, keyCount: Int) -> [Contestant] {
    [
      contestant(SyncedSystem.self, mutationCount: mutationCount, keyCount: keyCount),
      contestant(HandWrittenRepository<Raise>.self, mutationCount: mutationCount, keyCount: keyCount),
    ]
  }

  private func contestant<System: RepositorySystem<Raise>>(
    _ type: System.Type, mutationCount: Int, keyCount: Int
  ) -> Contestant {
    let changesByTask = (0..<Self.taskCount).map { task in
      stride(from: task, to: mutationCount, by: Self.taskCount).map {
        (key: "\($0 % keyCount)", mutation: Raise(serial: $0 + 1))
      }
    }
    return Contestant(label: type.label, count: mutationCount) {
      let server = Server.counters()
      let keys = (0..<keyCount).map { "\($0)" }
      return try await environment.withPlace(server, keys: keys) { place in
        server.setReachable(false)
        let system = System(server, place.makeStore())
        let making = try await Span.measure { try await system.perform(changesByTask) }
        server.setReachable(true)
        let draining = try await Span.measure { try await system.deliverAll() }
        try await environment.check(place, server, keys: keys, type.label)
        return making.each("make", of: mutationCount) + draining.each("drain", of: mutationCount)
          + [draining.total("drain all")]
      }
    }
  }
}
