import GraphQLClient

/// The transports of `GraphQLClient`, as arguments of tests that apply to each of them.
enum TransportKind: CaseIterable, Sendable {
  case urlSession
  #if os(Linux)
    case curl
  #endif

  func makeTransport() throws -> any HTTPTransport {
    switch self {
    case .urlSession: return URLSessionTransport()
    #if os(Linux)
      case .curl:
        guard let transport = CurlTransport() else { throw NoSupportedLibcurl() }
        return transport
    #endif
    }
  }

  /// Whether the process survives every response that the transport receives.
  ///
  /// The documentation of `URLSessionTransport` lists the responses that crash the process on Linux.
  var survivesHostileServers: Bool {
    #if os(Linux)
      self == .curl
    #else
      true
    #endif
  }

  private struct NoSupportedLibcurl: Error {}
}
