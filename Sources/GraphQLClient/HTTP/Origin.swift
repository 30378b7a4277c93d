internal import Foundation

/// The scheme, host and port of an HTTP URL.
struct Origin: Hashable, Sendable {
  let scheme: String
  let host: String
  let port: Int

  /// Creates the origin of a URL, or returns `nil` if the scheme isn't `http` or `https`, or if the URL has no host or
  /// an invalid port.
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
  /// The URL without its user and password, for use in error messages.
  var withoutCredentials: URL {
    guard user() != nil, var components = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return self }
    components.user = nil
    components.password = nil
    return components.url ?? self
  }
}
