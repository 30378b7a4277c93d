internal import Observation

/// Waits until a condition holds for what it observes, in the place of a sleep.
///
/// The condition is asked again whenever an `@Observable` property that it read has changed. What it reads belongs to
/// the main actor.
@MainActor
public func until(_ condition: @escaping @MainActor () -> Bool) async {
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
