internal import Foundation

/// Scheme, host and port of an address of HTTP.
struct Origin: Hashable, Sendable {
  let scheme: String
  let host: String
  let port: Int

  /// `nil` where the address has another scheme, or no host.
  init?(_ url: URL) {
    guard let scheme = url.scheme?.lowercased(), scheme == "http" || scheme == "https",
      let host = url.host(percentEncoded: false)?.lowercased(), !host.isEmpty
    else { return nil }
    self.scheme = scheme
    self.host = host
    port = url.port ?? (scheme == "https" ? 443 : 80)
  }
}
