internal import BenchmarkKit
internal import Repository

/// Changes that are made while the server can't be reached, and delivered when it can.
struct Drain: Sendable {
  private static let makers = 32

  private let environment: Environment

  init(_ environment: Environment) {
    self.environment = environment
  }

  static func part(_ mutations: Int) -> String { "\(mutations) mutations" }

  /// The comparisons with different numbers of changes of one key.
  var ofOneKey: [Comparison<Setting>] {
    Set([500, 2_000, 8_000].map { environment.options.scaled($0) }).sorted().map { mutations in
      Comparison(
        Setting(row: .drain, part: Self.part(mutations)), contestants: contestants(mutations: mutations, keys: 1))
    }
  }

  /// The comparison with changes of 1,000 keys.
  var ofManyKeys: Comparison<Setting> {
    let (mutations, keys) = (environment.options.scaled(8_000), environment.options.scaled(1_000))
    return Comparison(
      Setting(row: .drainKeys, part: "\(Self.part(mutations)) of \(keys) keys"),
      contestants: contestants(mutations: mutations, keys: keys))
  }

  private func contestants(mutations: Int, keys: Int) -> [Contestant] {
    [
      contestant(SyncedSystem.self, mutations: mutations, keys: keys),
      contestant(HandWrittenRepository<Raise>.self, mutations: mutations, keys: keys),
    ]
  }

  private func contestant<System: RepositorySystem<Raise>>(
    _ type: System.Type, mutations: Int, keys: Int
  ) -> Contestant {
    let changes = (0..<Self.makers).map { maker in
      stride(from: maker, to: mutations, by: Self.makers).map { (key: "\($0 % keys)", mutation: Raise(serial: $0 + 1)) }
    }
    return Contestant(label: type.label, count: mutations) {
      let server = Server.counters()
      let keys = (0..<keys).map { "\($0)" }
      return try await environment.withPlace(server, keys: keys) { place in
        server.setReachable(false)
        let system = System(server, place.makeStore())
        let making = try await Span.measure { try await system.perform(changes) }
        server.setReachable(true)
        let draining = try await Span.measure { try await system.deliverAll() }
        try await environment.check(place, server, keys: keys, type.label)
        return making.each("make", of: mutations) + draining.each("drain", of: mutations)
          + [draining.total("drain all")]
      }
    }
  }
}
