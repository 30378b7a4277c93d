/// Whether a repository fetches a value because it is observed.
public enum LoadingPolicy: Hashable, Sendable {
  /// Nothing is fetched but by a call, such as ``SyncedRepository/refresh(_:)``.
  case never

  /// Fetches the value when it is observed, and again for as long as it is.
  ///
  /// A value is fetched, unless it is fresh,
  /// - when its first observer comes,
  /// - when the app becomes active, or the network is back; see ``RepositoryConfiguration/activity`` and
  ///   ``RepositoryConfiguration/network``,
  /// - when it is made stale by ``SyncedRepository/invalidate(_:)``.
  ///
  /// Each of these is one request, however many observe the value. One that is in flight counts, unless it fails or began
  /// before the value was made stale: then another one follows. Without an observer there is none. While the app is inactive
  /// or the network is away, nothing is fetched.
  ///
  /// - Parameters:
  ///   - stopTimeout: How long after its last observer has left a value counts as observed, so that a screen that comes back
  ///     at once doesn't ask again. What was to be fetched meanwhile is fetched when an observer is back.
  ///   - every: How long after a fetch has ended the value is fetched again, fresh or not; `nil` if it isn't. More than
  ///     zero. Of several observers the shortest time counts.
  case whileObserved(stopTimeout: Duration = .seconds(5), every: Duration? = nil)

  /// What the policy says of an observed value; `nil` if it isn't fetched.
  var schedule: LoadingSchedule? {
    switch self {
    case .never: nil
    case .whileObserved(let stopTimeout, let every): LoadingSchedule(stopTimeout: stopTimeout, every: every)
    }
  }
}

/// When an observed value is fetched; see ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
struct LoadingSchedule: Hashable, Sendable {
  let stopTimeout: Duration
  let every: Duration?

  init(stopTimeout: Duration, every: Duration?) {
    precondition(every.map { $0 > .zero } ?? true, "LoadingPolicy: 'every' is more than zero.")
    (self.stopTimeout, self.every) = (stopTimeout, every)
  }
}
