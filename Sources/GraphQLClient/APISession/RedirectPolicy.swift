internal import Foundation

/// The redirections that an ``APISession`` follows.
///
/// The following rules hold for every policy:
///
/// - Only redirections with the status 307 or 308 are followed, because these statuses preserve the method and the body
///   of the request.
/// - A redirection from `https` to `http` isn't followed.
/// - A redirection to a URL with a user is followed only if the origin, the user and the password stay the same.
/// - At most five consecutive redirections are followed.
/// - The caller's headers, which may be credentials, are sent only to the origin of the session's URL. The exception is
///   `Idempotency-Key`. Another origin also receives `Content-Type`, `Accept` and the
///   ``APISession/defaultHeaders(appVersion:)``.
public struct RedirectPolicy: Hashable, Sendable {
  /// The maximum number of consecutive redirections.
  static let maximumCount = 5
  /// The maximum length of a location that is followed, in bytes.
  private static let maximumLocationLength = 8 * 1024

  private let followsRedirections: Bool
  private let hosts: Set<String>

  /// A policy that follows no redirections.
  public static let never = RedirectPolicy(followsRedirections: false, hosts: [])

  /// A policy that follows redirections to the same scheme, host and port.
  public static let sameOrigin = RedirectPolicy(followsRedirections: true, hosts: [])

  /// Returns a policy that follows redirections to the same scheme, host and port, and to the given hosts on any port.
  ///
  /// - Parameter hosts: The names of the hosts; their case doesn't matter.
  public static func hosts(_ hosts: Set<String>) -> RedirectPolicy {
    RedirectPolicy(followsRedirections: true, hosts: Set(hosts.map { $0.lowercased() }))
  }

  /// Returns the target of a redirection; `nil` if the response isn't a redirection that this policy follows.
  ///
  /// - Parameters:
  ///   - status: The status of the response.
  ///   - location: The value of the response's `Location` field.
  ///   - url: The URL of the request.
  func target(status: Int, location: String?, from url: URL) -> URL? {
    guard followsRedirections, status == 307 || status == 308, let location,
      location.utf8.count <= Self.maximumLocationLength,
      let target = URL(string: location, relativeTo: url)?.absoluteURL, let targetOrigin = Origin(target),
      let requestOrigin = Origin(url)
    else { return nil }
    if targetOrigin == requestOrigin {
      // A relative location inherits the user of the request's URL.
      let isUserAllowed = target.user() == nil || (target.user() == url.user() && target.password() == url.password())
      return isUserAllowed ? target : nil
    }
    guard target.user() == nil, hosts.contains(targetOrigin.host),
      targetOrigin.scheme == "https" || requestOrigin.scheme == "http"
    else { return nil }
    return target
  }
}
