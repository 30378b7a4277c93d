internal import BenchmarkKit
internal import Moments
internal import Repository

/// Likes on a long timeline, one at a time, which the server confirms immediately with the whole timeline.
struct TimelineLikes: Sendable {
  private let environment: Environment

  init(_ environment: Environment) {
    self.environment = environment
  }

  var comparison: Comparison<Setting> {
    let moments = environment.options.scaled(10_000, atLeast: 100)
    return Comparison(
      Setting(row: .timeline, part: "\(moments) moments"),
      contestants: [
        contestant(MomentsSystem.self, moments), contestant(HandWrittenRepository<MomentLike>.self, moments),
      ])
  }

  private func contestant<System: RepositorySystem<MomentLike>>(_ type: System.Type, _ moments: Int) -> Contestant {
    let count = environment.options.scaled(100)
    return Contestant(label: type.label, count: count) {
      let server = try Server.timeline(moments: moments)
      return try await environment.withPlace(server, keys: [Timelines.userID]) { place in
        let system = System(server, place.makeStore())
        let values = try await system.values(of: Timelines.userID)
        let observers = Observers(values, count: 1) { timeline, step in
          step == 0 || timeline.moments[Self.moment(step, of: moments)].isLiked == true
        }
        _ = await observers.lastArrival()
        let clock = ContinuousClock()
        var (shown, confirmed) = (OperationTimes(), OperationTimes())
        let span = try await Span.measure {
          for step in 1...count {
            let like = Timelines.like(of: Self.moment(step, of: moments))
            observers.expect(step)
            let start = clock.now
            guard try await system.perform(like, on: Timelines.userID) else {
              throw BenchmarkError.notConfirmed(system: type.label)
            }
            confirmed.add(server.answeredAt, clock.now)
            shown.add(start, await observers.lastArrival())
          }
        }
        observers.cancel()
        try await environment.check(place, server, keys: [Timelines.userID], type.label)
        return [shown.reading("like → observer"), confirmed.reading("reply → confirmed")]
          + span.each("whole", of: count)
      }
    }
  }

  /// Returns the moment that is liked in a step.
  ///
  /// No moment is liked twice, because there are no more steps than moments, and the stride is a prime number. The
  /// number of moments must not be a multiple of the stride.
  private static func moment(_ step: Int, of moments: Int) -> Int { step * 7_919 % moments }
}
