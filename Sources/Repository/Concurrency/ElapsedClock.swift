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

  init(_ clock: some Clock<Duration>) {
    let start = clock.now
    elapsed = { start.duration(to: clock.now) }
    sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: nil) }
  }
}
