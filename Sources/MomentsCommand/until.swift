internal import Observation

/// Waits until a condition holds for what it observes, or the calling task is cancelled.
///
/// The condition is asked again whenever an `@Observable` property that it read has changed. What it reads belongs to
/// the main actor, as the view models do: the command waits for them as a screen does.
@MainActor
func until(_ condition: @escaping @MainActor () -> Bool) async {
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
