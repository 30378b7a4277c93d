package import Foundation

/// The GraphQL server of `Tests/Support/bff`, in a process of its own on a free port.
///
/// One server serves one test, so tests run side by side and none sees the requests of another. The process ends with
/// its standard input and with its parent, so it never outlives the tests, however they end.
package struct BFFServer: Sendable {
  /// The address of the GraphQL endpoint, the same after each start.
  package let url: URL

  let control: BFFControl

  private let process: BFFProcess

  /// Whether the interpreter exists and has graphql-core; found out once.
  package static let isAvailable: Bool = {
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

  /// Where the server can run, as a test that is skipped says it.
  package static let requirement =
    "needs Python 3 with graphql-core: pip install -r Tests/Support/bff/requirements.txt (MOMENTS_BFF_PYTHON names another python3)"

  /// Whether a missing server is a failure: `MOMENTS_REQUIRE_BFF=1` in the environment.
  package static let isRequired = ProcessInfo.processInfo.environment["MOMENTS_REQUIRE_BFF"] == "1"

  /// Starts a server, passes it to `body`, and stops it, however `body` ends.
  ///
  /// - Parameters:
  ///   - keepsState: Whether a server that is stopped and started again goes on where it ended; if not, it begins anew.
  ///   - options: Options of the command line; see `Tests/Support/bff/README.md`.
  ///   - body: What to do with the server.
  package static func run<Result>(
    keepsState: Bool = false,
    options: [String] = [],
    isolation: isolated (any Actor)? = #isolation,
    _ body: (BFFServer) async throws -> sending Result
  ) async throws -> sending Result {
    let folder = keepsState ? try makeFolder() : nil
    // The state must not go before the server that writes it has ended.
    defer { if let folder { try? FileManager.default.removeItem(at: folder) } }
    let process = BFFProcess(state: folder?.appending(path: "state"), options: options)
    let result: Swift.Result<Result, any Error>
    do {
      let url = try await process.start()
      result = .success(try await body(BFFServer(url: url, control: BFFControl(url: url), process: process)))
    } catch {
      result = .failure(error)
    }
    await process.stop()
    return try result.get()
  }

  private static func makeFolder() throws -> URL {
    let folder = FileManager.default.temporaryDirectory.appending(path: "BFFServer-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    return folder
  }

  /// Stops the server and waits for its end; connections are refused from then on.
  package func stop() async {
    await process.stop()
  }

  /// Kills the server in the middle of whatever it does, and waits for its end.
  package func kill() async {
    await process.kill()
  }

  /// Starts the server again, on the port it had.
  package func start() async throws {
    _ = try await process.start()
  }
}
