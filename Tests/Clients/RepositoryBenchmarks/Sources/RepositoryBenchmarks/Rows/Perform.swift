internal import BenchmarkKit
internal import Repository

/// Changes of a small value, one at a time, which the server confirms immediately.
struct Perform: Sendable {
  private static let observerCount = 64
  /// A repository holds its lock for 250 milliseconds after a change.
  private static let idleTime = Duration.milliseconds(400)

  private let environment: Environment

  init(_ environment: Environment) {
    self.environment = environment
  }

  /// The comparison of the time from the call until the last observer receives the change.
  var shown: Comparison<Setting> {
    Comparison(
      Setting(row: .performShown),
      contestants: [shownContestant(SyncedSystem.self), shownContestant(HandWrittenRepository<Raise>.self)])
  }

  /// The comparison of the time until the call returns, when the change is durably confirmed.
  var confirmed: Comparison<Setting> {
    Comparison(
      Setting(row: .performConfirmed),
      contestants: [confirmedContestant(SyncedSystem.self), confirmedContestant(HandWrittenRepository<Raise>.self)])
  }

  /// The comparison of the same time if each call finds the system idle, so that a repository has to lead again.
  var idle: Comparison<Setting> {
    Comparison(
      Setting(row: .performIdle),
      contestants: [
        confirmedContestant(SyncedSystem.self, after: Self.idleTime),
        confirmedContestant(HandWrittenRepository<Raise>.self, after: Self.idleTime),
      ])
  }

  private func shownContestant<System: RepositorySystem<Raise>>(_ type: System.Type) -> Contestant {
    let count = environment.options.scaled(500)
    return Contestant(label: type.label, count: count) {
      let server = Server.counters()
      return try await environment.withPlace(server) { place in
        let system = System(server, place.makeStore())
        let values = try await system.values(of: "0")
        let observers = Observers(values, count: Self.observerCount) { counter, step in counter.serial == step }
        // All observers receive the initial value before the measurement.
        _ = await observers.waitForLastArrival()
        var times = OperationTimes()
        let span = try await Span.measure {
          for serial in 1...count {
            observers.expect(serial)
            let start = ContinuousClock.now
            try await raiseCounter(to: serial, with: system)
            times.add(start, await observers.waitForLastArrival())
          }
        }
        observers.cancel()
        try await environment.check(place, server, type.label)
        return [times.reading("last of \(Self.observerCount) observers")] + span.each("with confirmation", of: count)
      }
    }
  }

  /// - Parameters:
  ///   - type: The system.
  ///   - pause: The time before each change.
  private func confirmedContestant<System: RepositorySystem<Raise>>(
    _ type: System.Type, after pause: Duration? = nil
  ) -> Contestant {
    let count = environment.options.scaled(pause == nil ? 300 : 30)
    return Contestant(label: type.label, count: count) {
      let server = Server.counters()
      return try await environment.withPlace(server) { place in
        let system = System(server, place.makeStore())
        var times = OperationTimes()
        let span = try await Span.measure {
          for serial in 1...count {
            if let pause { try await Task.sleep(for: pause) }
            try await times.measure { try await raiseCounter(to: serial, with: system) }
          }
        }
        try await environment.check(place, server, type.label)
        return [times.reading("confirmed")] + span.each("mean", of: count)
      }
    }
  }

  private func raiseCounter<System: RepositorySystem<Raise>>(to serial: Int, with system: System) async throws {
    guard try await system.perform(Raise(serial: serial), on: "0") else {
      throw BenchmarkError.notConfirmed(system: System.label)
    }
  }
}
