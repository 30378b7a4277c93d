internal import Observation

/// Waits until a condition holds for what it observes.
///
/// The condition is asked again whenever an `@Observable` property that it read has changed. What it reads belongs to
/// the main actor, as the view models do: the command waits for them as a screen does.
@MainActor
func until(_ condition: @escaping @MainActor () -> Bool) async {
  while !condition() {
    await withCheckedContinuation { continuation in
      withObservationTracking {
        _ = condition()
      } onChange: {
        Task { @MainActor in continuation.resume() }
      }
    }
  }
}
