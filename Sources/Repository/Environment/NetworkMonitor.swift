internal import Multicast

/// Whether the network can be reached, as far as the system knows.
public enum NetworkStatus: Hashable, Sendable {
  case online
  case offline
  /// It isn't known, so requests are tried.
  case unknown
}

/// Tells a repository when the network comes and goes.
///
/// While it is offline, mutations wait and nothing is fetched but by a call, or to confirm a mutation. When it is back, the mutations are sent first,
/// for five seconds at most, and then what is observed is fetched; see
/// ``LoadingPolicy/whileObserved(stopTimeout:every:)``.
///
/// A monitor may be wrong, and then it delays. A call such as ``SyncedRepository/reload(_:)`` asks the server all the same,
/// and if it answers, all goes on; ``SyncedRepository/retryNow()`` lets all go on at once.
public protocol NetworkMonitor: Sendable {
  /// The present status, then every later one.
  ///
  /// Each repository iterates it once. Where it ends, the last status stays.
  var statuses: any AsyncSequence<NetworkStatus, Never> & Sendable { get }
}

/// A network monitor that an app or a test feeds by hand.
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
