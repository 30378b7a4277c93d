/// Decides whether, and when, observing a value makes a repository fetch it.
public enum LoadingPolicy: Hashable, Sendable {
  /// Fetches the value only if a method asks for it, such as ``SyncedRepository/refresh(_:)``, or to confirm a
  /// mutation.
  case never

  /// Fetches the value when it is first observed, and again while it is observed.
  ///
  /// Unless the value is fresh, it is fetched
  /// - when its first observer subscribes,
  /// - when the app becomes active, or the network becomes available; see ``RepositoryConfiguration/activity`` and
  ///   ``RepositoryConfiguration/network``,
  /// - when it is marked as stale by ``SyncedRepository/invalidate(_:)``,
  /// - when the user to whom the value belongs signs in again.
  ///
  /// Each of these events leads to one request, regardless of the number of observers. If a request is already in
  /// flight, another one follows only if that request fails, or if it began before the value was marked as stale.
  /// The policy fetches nothing without an observer, while the app is inactive, or while the network is unavailable.
  ///
  /// At most ``RepositoryConfiguration/maximumObservedFetches`` values are fetched at the same time, in the order in
  /// which they became due. A value whose last observer leaves while it waits for its turn isn't fetched. Calls such as
  /// ``SyncedRepository/refresh(_:)`` don't wait.
  ///
  /// So that many devices don't ask the server at the same moment, the fetches are delayed at random: by up to two
  /// seconds when the network becomes available, by up to a quarter of a second when the app becomes active, and by up
  /// to a tenth of the time `every`. See ``RepositoryConfiguration/random``.
  ///
  /// - Parameters:
  ///   - stopTimeout: The time for which a value still counts as observed after its last observer is gone, so that a
  ///     screen that reappears shortly afterwards doesn't fetch again. A fetch that becomes due during this time is
  ///     made when an observer returns.
  ///   - every: The time from the end of a fetch to the next one, which is made even if the value is fresh. A random
  ///     time of up to a tenth is added. If `every` is `nil`, fetches aren't repeated. Must be greater than zero. If
  ///     several observers specify a time, the shortest one applies.
  case whileObserved(stopTimeout: Duration = .seconds(5), every: Duration? = nil)

  /// The schedule for an observed value; `nil` for ``never``.
  var schedule: LoadingSchedule? {
    switch self {
    case .never: nil
    case .whileObserved(let stopTimeout, let every): LoadingSchedule(stopTimeout: stopTimeout, every: every)
    }
  }
}

/// The schedule by which an observed value is fetched; see ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
struct LoadingSchedule: Hashable, Sendable {
  let stopTimeout: Duration
  let every: Duration?

  init(stopTimeout: Duration, every: Duration?) {
    precondition(every.map { $0 > .zero } ?? true, "LoadingPolicy: 'every' must be greater than zero.")
    (self.stopTimeout, self.every) = (stopTimeout, every)
  }
}
