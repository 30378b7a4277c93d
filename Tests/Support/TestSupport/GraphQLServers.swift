package import Foundation

/// The servers of `Tests/Support/graphql-servers`: Ariadne, Strawberry, and nginx in front of them.
///
/// All tests of a process share one process of the servers, because its start takes seconds. Each test uses a user of
/// its own. The servers end with the process of the tests.
package struct GraphQLServers: Sendable {
  /// The GraphQL endpoint that tests control the servers with.
  package let control: URL

  /// Returns the URL of a server's GraphQL endpoint.
  package func url(of server: String) -> URL { control.deletingLastPathComponent().appending(path: server) }

  /// Whether the tests that need the servers run: whether `MOMENTS_GRAPHQL_SERVERS_PYTHON` in the environment names a
  /// Python interpreter with what they need.
  package static let isRequested = python.isRequested

  /// The requirements of the servers, as the message of a skipped test states them.
  package static let requirement =
    "needs nginx, and a Python 3.11 that \(python.variable) names: \(python.installation)"

  private static let python = PythonServer(
    script: "graphql-servers/server.py", variable: "MOMENTS_GRAPHQL_SERVERS_PYTHON",
    installation: "pip install -r Tests/Support/graphql-servers/requirements.txt")

  /// Returns the servers, which the first call starts.
  package static func shared() async throws -> GraphQLServers { try await start.value }

  private static let start = Task {
    // Never stopped: the servers end when their standard input is closed, which the process holds.
    GraphQLServers(control: try await process.start())
  }

  private static let process = PythonServerProcess(python)
}
