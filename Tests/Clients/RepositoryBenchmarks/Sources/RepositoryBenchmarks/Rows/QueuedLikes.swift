internal import BenchmarkKit
internal import Moments
internal import Repository

/// Many likes on one timeline, made while the server can't be reached, then a relaunch and the delivery of the likes.
struct QueuedLikes: Sendable {
  private static let momentCount = 200
  /// The number of tasks that make the likes.
  private static let taskCount = 16

  private let environment: Environment

  init(_ environment: Environment) {
    self.environment = environment
  }

  static func label(_ likeCount: Int) -> String { "\(likeCount) likes" }

  /// The comparisons with different numbers of likes.
  var comparisons: [Comparison<Setting>] {
    Set([2_000, 8_000].map { environment.options.scaled($0) }).sorted().map { likeCount in
      Comparison(
        Setting(row: .likes, variant: Self.label(likeCount)),
        contestants: [
          contestant(MomentsSystem.self, likeCount), contestant(HandWrittenRepository<MomentLike>.self, likeCount),
        ])
    }
  }

  private func contestant<System: RepositorySystem<MomentLike>>(_ type: System.Type, _ count: Int) -> Contestant {
    Contestant(label: type.label, count: count) {
      let server = try Server.timeline(moments: Self.momentCount)
      return try await environment.withPlace(server, keys: [Timelines.userID]) { place in
        server.setReachable(false)
        let making = try await makeLikes(count, with: System(server, place.makeStore()))

        let expected = try Self.timeline(afterLikes: count)
        var relaunched: System?
        let relaunching = try await Span.measure {
          let system = System(server, place.makeStore())
          relaunched = system
          try await waitUntilShown(expected, by: system)
        }

        server.setReachable(true)
        let delivering = try await Span.measure { try await relaunched?.deliverAll() }
        guard server.value(of: Timelines.userID) == expected else {
          throw BenchmarkError.wrongValue(system: type.label, key: Timelines.userID)
        }
        try await environment.check(place, server, keys: [Timelines.userID], type.label)
        return making.each("make", of: count) + relaunching.each("relaunch", of: count)
          + delivering.each("deliver", of: count)
      }
    }
  }

  /// Makes the likes with a system that is released afterwards.
  private func makeLikes(_ count: Int, with system: some RepositorySystem<MomentLike>) async throws -> Span {
    // The likes of one moment are made by one task, so their order is known.
    var likesByTask = [[(key: String, mutation: MomentLike)]](repeating: [], count: Self.taskCount)
    for number in 0..<count {
      likesByTask[number % Self.momentCount % Self.taskCount].append((Timelines.userID, Self.like(number)))
    }
    let span = try await Span.measure { try await system.perform(likesByTask) }
    await system.waitForFailedAttempt()
    return span
  }

  private func waitUntilShown<System: RepositorySystem<MomentLike>>(
    _ expected: MomentsDetails, by system: System
  ) async throws {
    for await timeline in try await system.values(of: Timelines.userID) {
      if timeline == expected { return }
    }
    throw BenchmarkError.ended(system: System.label)
  }

  /// Returns the like with a number: the first pass over the moments likes each, the second unlikes each, and so on.
  private static func like(_ number: Int) -> MomentLike {
    Timelines.like(of: number % momentCount, isLiked: (number / momentCount).isMultiple(of: 2))
  }

  private static func timeline(afterLikes count: Int) throws -> MomentsDetails {
    var timeline = try Timelines.make(moments: momentCount)
    for number in 0..<count { like(number).apply(to: &timeline) }
    return timeline
  }
}
