import GraphQLClient
import TestSupport

extension BFFServer {
  /// A session with the server.
  ///
  /// On a machine that is busy with other tests, a reply may take longer than a realistic timeout.
  var apiSession: APISession { APISession(url: url, timeout: .seconds(1_000)) }
}
