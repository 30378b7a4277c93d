import GraphQLClient

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The transports of this module, for tests that hold for each.
enum TransportKind: CaseIterable, Sendable {
  case urlSession
  #if canImport(FoundationNetworking)
    case curl
  #endif

  func makeTransport() throws -> any HTTPTransport {
    switch self {
    case .urlSession: return URLSessionTransport()
    #if canImport(FoundationNetworking)
      case .curl:
        guard let transport = CurlTransport() else { throw Missing() }
        return transport
    #endif
    }
  }

  /// Whether no response ends the process; the documentation of `URLSessionTransport` lists those that do on Linux.
  var survivesHostileServers: Bool {
    #if canImport(FoundationNetworking)
      self == .curl
    #else
      true
    #endif
  }

  private struct Missing: Error {}
}
