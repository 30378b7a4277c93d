internal import Foundation

/// Which redirections an ``APISession`` follows.
///
/// Only the statuses 307 and 308 are followed, since they keep the method and the body of a request. Whatever the
/// policy, no redirection leads from `https` to `http` or to an address with a user of its own, at most five are
/// followed in a row, and the caller's headers, which may be credentials, go to the origin of the session's URL alone:
/// to another one go only those fields that carry the message, the ``APISession/defaultHeaders(appVersion:)``, and
/// `Idempotency-Key`.
public struct RedirectPolicy: Hashable, Sendable {
  /// The most redirections in a row.
  static let maximumCount = 5
  /// The longest address that is followed, in bytes.
  private static let maximumLength = 8 * 1024

  private let isFollowing: Bool
  private let hosts: Set<String>

  /// Follows none.
  public static let never = RedirectPolicy(isFollowing: false, hosts: [])

  /// Follows those to the same scheme, host and port.
  public static let sameOrigin = RedirectPolicy(isFollowing: true, hosts: [])

  /// Follows those to the same scheme, host and port, and to these hosts, by any port.
  public static func hosts(_ hosts: Set<String>) -> RedirectPolicy {
    RedirectPolicy(isFollowing: true, hosts: Set(hosts.map { $0.lowercased() }))
  }

  /// Returns where a response sends the request, if this policy lets it go there.
  ///
  /// - Parameters:
  ///   - status: The status of the response.
  ///   - location: The value of its `Location` field.
  ///   - url: The address of the request.
  func target(status: Int, location: String?, from url: URL) -> URL? {
    guard isFollowing, status == 307 || status == 308, let location, location.utf8.count <= Self.maximumLength,
      let target = URL(string: location, relativeTo: url)?.absoluteURL, let origin = Origin(target),
      let source = Origin(url)
    else { return nil }
    if origin == source {
      // A relative address inherits the session's own user.
      let isOwn = target.user() == nil || (target.user() == url.user() && target.password() == url.password())
      return isOwn ? target : nil
    }
    guard target.user() == nil, hosts.contains(origin.host), origin.scheme == "https" || source.scheme == "http"
    else { return nil }
    return target
  }
}
