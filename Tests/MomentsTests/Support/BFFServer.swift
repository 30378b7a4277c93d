import Foundation
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

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
/// One server serves one test, so tests run side by side and none sees the requests of another.
struct BFFServer: Sendable {
  /// The address of the GraphQL endpoint.
  let url: URL

  /// Whether the interpreter exists and has graphql-core; found out once.
  static let isAvailable: Bool = {
    let probe = pythonProcess(arguments: ["-c", "import graphql"])
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
  static func run<Result>(
    isolation: isolated (any Actor)? = #isolation,
    _ body: (BFFServer) async throws -> sending Result
  ) async throws -> sending Result {
    let process = pythonProcess(arguments: [scriptURL.path])
    let (input, output, errors) = (Pipe(), Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    process.standardError = errors
    let (exits, exit) = AsyncStream<Void>.makeStream()
    process.terminationHandler = { _ in exit.finish() }
    try process.run()

    let result: Swift.Result<Result, any Error>
    do {
      result = .success(try await body(BFFServer(url: try await address(output: output, errors: errors))))
    } catch {
      result = .failure(error)
    }
    // The server ends with its standard input.
    try input.fileHandleForWriting.close()
    for await _ in exits {}
    return try result.get()
  }

  /// Waits for the line by which the server says that it is ready.
  private static func address(output: Pipe, errors: Pipe) async throws -> URL {
    let line = await withCheckedContinuation { continuation in
      // Reading blocks, which must not take a thread from those who count on it.
      Thread.detachNewThread {
        var line = Data()
        while true {
          let data = output.fileHandleForReading.availableData
          line.append(data)
          if data.isEmpty || data.contains(UInt8(ascii: "\n")) { break }
        }
        continuation.resume(returning: String(decoding: line, as: UTF8.self))
      }
    }
    let prefix = "listening on "
    guard line.hasPrefix(prefix),
      let url = URL(string: line.dropFirst(prefix.count).trimmingCharacters(in: .newlines))
    else {
      throw StartFailure(output: line, errors: errors.fileHandleForReading.readDataToEndOfFile())
    }
    return url
  }

  private static func pythonProcess(arguments: [String]) -> Process {
    var environment = ProcessInfo.processInfo.environment
    let python = environment["MOMENTS_BFF_PYTHON"] ?? "python3"
    // The sources stay as they were checked out.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [python] + arguments
    process.environment = environment
    return process
  }

  private static var scriptURL: URL {
    URL(filePath: #filePath).appending(path: "../../../Support/bff/server.py").standardizedFileURL
  }

  private struct StartFailure: Error, CustomStringConvertible {
    let output: String
    let errors: Data

    var description: String {
      "The GraphQL server did not start. It said “\(output)” and “\(String(decoding: errors, as: UTF8.self))”. "
        + "Install what it needs: pip install -r Tests/Support/bff/requirements.txt"
    }
  }
}
