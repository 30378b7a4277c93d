internal import Observation

/// Waits until a condition is `true`, or the calling task is cancelled.
///
/// The condition is evaluated again whenever an `@Observable` property that it read changes. It must read only state of
/// the main actor, such as view models, because otherwise a change between evaluation and registration would be missed.
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
