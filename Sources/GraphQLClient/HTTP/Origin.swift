internal import Foundation

/// Scheme, host and port of an address of HTTP.
struct Origin: Hashable, Sendable {
  let scheme: String
  let host: String
  let port: Int

  /// `nil` where the address has another scheme, no host, or a port that is no port.
  init?(_ url: URL) {
    guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
      let host = url.host(percentEncoded: false)?.lowercased(), !host.isEmpty,
      let components = URLComponents(url: url, resolvingAgainstBaseURL: true),
      components.rangeOfPort == nil || components.port != nil
    else { return nil }
    self.scheme = scheme
    self.host = host
    port = url.port ?? (scheme == "https" ? 443 : 80)
  }
}

extension URL {
  /// The address without a user and a password, for an error's text.
  var withoutUser: URL {
    guard user() != nil, var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return self }
    components.user = nil
    components.password = nil
    return components.url ?? self
  }
}
