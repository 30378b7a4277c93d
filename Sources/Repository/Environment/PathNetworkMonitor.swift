#if canImport(Network)
  internal import Dispatch
  internal import Network

  /// A network monitor for Apple's platforms, which reports the status of the system's network path.
  public struct PathNetworkMonitor: NetworkMonitor {
    /// Creates a monitor.
    public init() {}

    /// The present status, then every later one.
    ///
    /// While no element is consumed, only the newest status is kept.
    public var statuses: any AsyncSequence<NetworkStatus, Never> & Sendable {
      AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
        let monitor = NWPathMonitor()
        monitor.pathUpdateHandler = { path in
          continuation.yield(NetworkStatus(path.status))
        }
        continuation.onTermination = { _ in monitor.cancel() }
        monitor.start(queue: .global(qos: .utility))
      }
    }
  }

  extension NetworkStatus {
    fileprivate init(_ status: NWPath.Status) {
      self =
        switch status {
        case .satisfied: .online
        case .unsatisfied: .offline
        // The connection is established when a request is sent.
        case .requiresConnection: .unknown
        @unknown default: .unknown
        }
    }
  }
#endif
