import Foundation
import Testing

extension Trait where Self == ConditionTrait {
  /// Runs the test only where the GraphQL server can run; fails it there instead if the server is required.
  static var requiresBFF: Self {
    .enabled(
      if: BFFServer.isAvailable || BFFServer.isRequired,
      "needs Python 3 with graphql-core: pip install -r Tests/Support/bff/requirements.txt (MOMENTS_BFF_PYTHON names another python3)"
    )
  }
}

/// The GraphQL server of `Tests/Support/bff`, in a process of its own on a free port.
///
/// One server serves one test, so tests run side by side and none sees the requests of another. The process ends with
/// its standard input and with its parent, so it never outlives the tests, however they end.
struct BFFServer: Sendable {
  /// The address of the GraphQL endpoint, the same after each start.
  let url: URL

  let control: BFFControl

  private let process: BFFProcess

  /// Whether the interpreter exists and has graphql-core; found out once.
  static let isAvailable: Bool = {
    let probe = BFFProcess.python(arguments: ["-c", "import graphql"])
    probe.standardInput = FileHandle.nullDevice
    probe.standardOutput = FileHandle.nullDevice
    probe.standardError = FileHandle.nullDevice
    do {
      try probe.run()
    } catch {
      return false
    }
    probe.waitUntilExit()
    return probe.terminationStatus == 0
  }()

  /// Whether a missing server is a failure: `MOMENTS_REQUIRE_BFF=1` in the environment.
  static let isRequired = ProcessInfo.processInfo.environment["MOMENTS_REQUIRE_BFF"] == "1"

  /// Starts a server, passes it to `body`, and stops it, however `body` ends.
  ///
  /// - Parameters:
  ///   - keepsState: Whether a server that is stopped and started again goes on where it ended; if not, it begins anew.
  ///   - body: What to do with the server.
  static func run<Result>(
    keepsState: Bool = false,
    isolation: isolated (any Actor)? = #isolation,
    _ body: (BFFServer) async throws -> sending Result
  ) async throws -> sending Result {
    let folder = keepsState ? try TemporaryFolder() : nil
    let process = BFFProcess(state: folder?.url.appending(path: "state"))
    let result: Swift.Result<Result, any Error>
    do {
      let url = try await process.start()
      result = .success(try await body(BFFServer(url: url, control: BFFControl(url: url), process: process)))
    } catch {
      result = .failure(error)
    }
    await process.stop()
    // The state must not go before the server that writes it.
    withExtendedLifetime(folder) {}
    return try result.get()
  }

  /// Stops the server and waits for its end; connections are refused from then on.
  func stop() async {
    await process.stop()
  }

  /// Kills the server in the middle of whatever it does, and waits for its end.
  func kill() async {
    await process.kill()
  }

  /// Starts the server again, on the port it had.
  func start() async throws {
    _ = try await process.start()
  }
}
