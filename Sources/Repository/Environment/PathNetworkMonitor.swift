#if canImport(Network)
  internal import Network

  /// What the system says of the network, on Apple's platforms.
  public struct PathNetworkMonitor: NetworkMonitor {
    /// Creates a monitor.
    public init() {}

    /// What the system says now, then every later status; the newest alone while none is read.
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
        // A connection is made when something is sent.
        case .requiresConnection: .unknown
        @unknown default: .unknown
        }
    }
  }
#endif
