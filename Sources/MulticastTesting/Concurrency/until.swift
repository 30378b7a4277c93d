internal import Observation

/// Suspends until a condition on observable properties holds, or the calling task is cancelled.
///
/// A test, or a script that drives view models, awaits this instead of sleeping. The condition is evaluated again
/// whenever an `@Observable` property that it has read changes.
///
/// - Parameter condition: The condition, which must read only properties that change on the main actor, because a
///   change elsewhere might be missed.
@MainActor
public func until(_ condition: @escaping @MainActor () -> Bool) async {
  while !condition(), !Task.isCancelled {
    let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
    withObservationTracking {
      _ = condition()
    } onChange: {
      continuation.yield()
    }
    for await _ in changes { break }
  }
}
