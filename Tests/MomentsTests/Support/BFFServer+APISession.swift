import GraphQLClient
import TestSupport

extension BFFServer {
  /// A session with the server.
  ///
  /// Its timeout is long, because a reply may take long on a machine that is busy with other tests.
  var apiSession: APISession { APISession(url: url, timeout: .seconds(1_000)) }
}
