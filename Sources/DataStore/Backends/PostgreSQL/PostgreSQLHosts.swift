#if PostgreSQL
  internal import CPostgreSQL

  /// The hosts of an address, which may name several.
  ///
  /// libpq tries them in order. If one of them accepts a connection and falls silent, libpq's asynchronous functions wait
  /// for it forever. So ``PostgreSQLOpening`` then tries the other hosts.
  struct PostgreSQLHosts: Equatable {
    struct Host: Equatable {
      var name: String
      /// The numeric address; empty if the name is resolved.
      var address: String
      var port: String
    }

    private(set) var hosts: [Host]
    private let hasAddresses: Bool

    /// Creates the list from the settings of libpq, in which commas separate the hosts.
    init(host: String, address: String, port: String) {
      hasAddresses = !address.isEmpty
      let (names, addresses, ports) = (Self.list(host), Self.list(address), Self.list(port))
      hosts = (0..<max(names.count, addresses.count)).map { index in
        Host(
          name: index < names.count ? names[index] : "", address: index < addresses.count ? addresses[index] : "",
          // One port may be that of all hosts.
          port: index < ports.count ? ports[index] : ports.last ?? "")
      }
    }

    private static func list(_ text: String) -> [String] {
      text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    /// Removes a host that libpq names.
    ///
    /// - Parameters:
    ///   - host: The name of the host, or its numeric address if it has no name.
    ///   - port: The port.
    mutating func remove(host: String, port: String) {
      let isNamed = { (candidate: Host) in (candidate.name.isEmpty ? candidate.address : candidate.name) == host }
      let index = hosts.firstIndex { isNamed($0) && $0.port == port } ?? hosts.firstIndex(where: isNamed)
      if let index { hosts.remove(at: index) } else { hosts = [] }
    }

    /// The settings of libpq for these hosts.
    var options: [(String, String)] {
      let options = [("host", hosts.map(\.name)), ("port", hosts.map(\.port))]
      return (options + (hasAddresses ? [("hostaddr", hosts.map(\.address))] : [])).map {
        ($0.0, $0.1.joined(separator: ","))
      }
    }
  }
#endif
