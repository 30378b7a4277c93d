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
    let momentCount = environment.options.scaled(10_000, atLeast: 100)
    return Comparison(
      Setting(row: .timeline, variant: "\(momentCount) moments"),
      contestants: [
        contestant(MomentsSystem.self, momentCount), contestant(HandWrittenRepository<MomentLike>.self, momentCount),
      ])
  }

  private func contestant<System: RepositorySystem<MomentLike>>(_ type: System.Type, _ momentCount: Int) -> Contestant {
    let count = environment.options.scaled(100)
    return Contestant(label: type.label, count: count) {
      let server = try Server.timeline(moments: momentCount)
      return try await environment.withPlace(server, keys: [Timelines.userID]) { place in
        let system = System(server, place.makeStore())
        let values = try await system.values(of: Timelines.userID)
        let observers = Observers(values, count: 1) { timeline, step in
          step == 0 || timeline.moments[Self.momentIndex(step, of: momentCount)].isLiked == true
        }
        // The observer receives the initial value before the measurement.
        _ = await observers.waitForLastArrival()
        let clock = ContinuousClock()
        var (shownTimes, confirmedTimes) = (OperationTimes(), OperationTimes())
        let span = try await Span.measure {
          for step in 1...count {
            let like = Timelines.like(of: Self.momentIndex(step, of: momentCount))
            observers.expect(step)
            let start = clock.now
            guard try await system.perform(like, on: Timelines.userID) else {
              throw BenchmarkError.notConfirmed(system: type.label)
            }
            confirmedTimes.add(server.answeredAt, clock.now)
            shownTimes.add(start, await observers.waitForLastArrival())
          }
        }
        observers.cancel()
        try await environment.check(place, server, keys: [Timelines.userID], type.label)
        return [shownTimes.reading("like → observer"), confirmedTimes.reading("reply → confirmed")]
          + span.each("each like", of: count)
      }
    }
  }

  /// Returns the index of the moment that is liked in a step.
  ///
  /// No moment is liked twice, because there are no more steps than moments, and the stride is a prime number. The
  /// number of moments must not be a multiple of the stride.
  private static func momentIndex(_ step: Int, of momentCount: Int) -> Int { step * 7_919 % momentCount }
}
