internal import Observation

/// Waits until a condition holds for what it observes, or the calling task is cancelled, in the place of a sleep.
///
/// The condition is asked again whenever an `@Observable` property that it read has changed. What it reads belongs to
/// the main actor.
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
