package import Foundation

/// The GraphQL server of `Tests/Support/bff`, in a separate process on a free port.
///
/// Each test starts its own server, so tests can run in parallel without seeing each other's requests. The server
/// process ends with the process of the tests, because its standard input is then closed. On Linux, it ends even if
/// another process has inherited the other end of that input.
package struct BFFServer: Sendable {
  /// The URL of the GraphQL endpoint, which stays the same when the server is restarted.
  package let url: URL

  let control: BFFControl

  private let process: PythonServerProcess

  /// Whether the tests that need the server run: whether `MOMENTS_BFF_PYTHON` in the environment names a Python
  /// interpreter with graphql-core.
  package static let isRequested = python.isRequested

  private static let python = PythonServer(
    script: "bff/server.py", variable: "MOMENTS_BFF_PYTHON",
    installation: "pip install -r Tests/Support/bff/requirements.txt")

  /// The requirements of the server, as the message of a skipped test states them.
  package static let requirement =
    "needs a Python 3 with graphql-core, which MOMENTS_BFF_PYTHON names: pip install -r Tests/Support/bff/requirements.txt"

  /// Starts a server, passes it to `body`, and stops it when `body` returns or throws.
  ///
  /// - Parameters:
  ///   - keepsState: Whether the server keeps its state when it is stopped and started again.
  ///   - options: Command line options; see `Tests/Support/bff/README.md`.
  ///   - isolation: The isolation of the caller, which `body` inherits.
  ///   - body: A closure that uses the server.
  package static func run<Output>(
    keepsState: Bool = false,
    options: [String] = [],
    isolation: isolated (any Actor)? = #isolation,
    _ body: (BFFServer) async throws -> sending Output
  ) async throws -> sending Output {
    let folder = keepsState ? try TemporaryFolder.created() : nil
    // Removes the state only after the server that writes it has ended.
    defer { extendLifetime(folder) }
    let stateOptions = folder.map { ["--state", $0.url.appending(path: "state").path] } ?? []
    let process = PythonServerProcess(python, options: stateOptions + options)
    let result: Result<Output, any Error>
    do {
      let url = try await process.start()
      result = .success(try await body(BFFServer(url: url, control: BFFControl(url: url), process: process)))
    } catch {
      result = .failure(error)
    }
    await process.stop()
    return try result.get()
  }

  /// Stops the server and waits for it to end, after which connections are refused.
  package func stop() async {
    await process.stop()
  }

  /// Kills the server with `SIGKILL` and waits for it to end.
  package func kill() async {
    await process.kill()
  }

  /// Starts the server again on the same port.
  package func start() async throws {
    _ = try await process.start()
  }
}
