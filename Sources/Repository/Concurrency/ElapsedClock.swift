internal import Multicast

/// A clock of any kind, seen as the time since it was taken up.
///
/// Sleeps have an absolute end, so none lasts longer because it began late.
struct ElapsedClock: Sendable {
  /// How much time has passed.
  let elapsed: @Sendable () -> Duration

  /// Sleeps until so much time has passed.
  ///
  /// Throws `CancellationError` if the calling task is cancelled first.
  let sleep: @Sendable (_ until: Duration) async throws -> Void

  /// Waits until so much time has passed, until something else has happened, or until the calling task is cancelled.
  func wait(
    until deadline: Duration, or event: @escaping @Sendable () async -> Void,
    isolation: isolated (any Actor)? = #isolation
  ) async {
    await withTaskGroup { group in
      group.addTask {
        // Cancelled when the other one is first, or with the calling task.
        do { try await sleep(deadline) } catch {}
      }
      group.addTask(operation: event)
      await group.next()
      group.cancelAll()
    }
  }

  /// Waits until so much time has passed, until there is an element, or until the calling task is cancelled.
  func wait(
    until deadline: Duration, or elements: MulticastSubscription<Void, Never>?,
    isolation: isolated (any Actor)? = #isolation
  ) async {
    guard let elements else {
      // Ended by a cancellation, or by the time.
      do { try await sleep(deadline) } catch {}
      return
    }
    await wait(until: deadline) {
      for await _ in elements { return }
      // No element comes any more.
      do { try await sleep(deadline) } catch {}
    }
  }

  init(_ clock: some Clock<Duration>) {
    let start = clock.now
    elapsed = { start.duration(to: clock.now) }
    sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
  }
}
