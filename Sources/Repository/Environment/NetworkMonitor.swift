internal import Multicast

/// Whether the network is reachable, as far as the system knows.
public enum NetworkStatus: Hashable, Sendable {
  case online
  case offline
  /// The status isn't known, so requests are tried.
  case unknown
}

/// Reports when the network becomes reachable or unreachable.
///
/// While the network is offline, mutations wait, and values are fetched only by a call or to confirm a mutation. When
/// the network is no longer offline, the mutations are sent first. Values that are observed with a loading policy are
/// fetched after a random delay once the mutations have been sent, or after five seconds; see
/// ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
///
/// A wrong status delays work but loses nothing. A call such as ``SyncedRepository/reload(_:)`` sends its request in
/// any status, and if the server answers, all work resumes. ``SyncedRepository/retryNow()`` resumes all work at once.
public protocol NetworkMonitor: Sendable {
  /// The present status, then every later one.
  ///
  /// Each repository iterates the sequence once. If it ends, the last status remains in effect.
  var statuses: any AsyncSequence<NetworkStatus, Never> & Sendable { get }
}

/// A network monitor whose status an app or a test sets.
///
/// ```swift
/// let network = ManualNetworkMonitor()
/// network.status = .offline
/// ```
public final class ManualNetworkMonitor: NetworkMonitor {
  private let relay: CurrentValueRelay<NetworkStatus>

  /// Creates a monitor.
  public init(_ status: NetworkStatus = .unknown) {
    relay = CurrentValueRelay(status, buffering: .unbounded)
  }

  /// The present status.
  public var status: NetworkStatus {
    get { relay.value }
    set { relay.send(newValue) }
  }

  /// The present status, then every later one.
  public var statuses: any AsyncSequence<NetworkStatus, Never> & Sendable { relay.stream }
}
