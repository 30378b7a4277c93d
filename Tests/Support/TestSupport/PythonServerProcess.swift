internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A server of the tests that is written in Python.
struct PythonServer: Sendable {
  /// The path of the script, from `Tests/Support`.
  let script: String
  /// The name of the environment variable that names the Python interpreter.
  let variable: String
  /// What to install if the server doesn't start.
  let installation: String

  /// Whether the environment names an interpreter, so that the tests that need the server run.
  var isRequested: Bool { ProcessInfo.processInfo.environment[variable] != nil }

  fileprivate var scriptURL: URL {
    URL(filePath: #filePath).appending(path: "../../\(script)").standardizedFileURL
  }

  fileprivate func process(arguments: [String]) -> Process {
    var environment = ProcessInfo.processInfo.environment
    let python = environment[variable] ?? "python3"
    // Keeps Python from writing compiled files next to the sources.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [python, scriptURL.path] + arguments
    process.environment = environment
    return process
  }
}

/// The process of a ``PythonServer``, which can be stopped and restarted on the same port.
actor PythonServerProcess {
  private struct RunningServer {
    let process: Process
    /// The writing end of the pipe to the server's standard input.
    ///
    /// The server ends when every copy of this end is closed. On Linux, it also ends when the tests' own process ends,
    /// even if another process has inherited a copy.
    let input: FileHandle
    /// A stream that finishes when the process ends.
    let termination: AsyncStream<Void>
  }

  private let server: PythonServer
  private let options: [String]
  /// The port of the server; 0 until the server has chosen a free one at its first start.
  private var port = 0
  private var runningServer: RunningServer?

  /// - Parameters:
  ///   - server: The server.
  ///   - options: Further command line options.
  init(_ server: PythonServer, options: [String] = []) {
    self.server = server
    self.options = options
  }

  /// Starts the server, and returns the URL that it prints once it accepts connections.
  func start() async throws -> URL {
    precondition(runningServer == nil, "The server is already running; stop it first.")
    let parent = ProcessInfo.processInfo.processIdentifier
    let process = server.process(arguments: ["--port", "\(port)", "--parent", "\(parent)"] + options)
    let (input, output, errors) = (Pipe(), Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    process.standardError = errors
    let (termination, continuation) = AsyncStream<Void>.makeStream()
    process.terminationHandler = { _ in continuation.finish() }
    try process.run()
    runningServer = RunningServer(process: process, input: input.fileHandleForWriting, termination: termination)
    let url = try await waitForURL(output: output, errors: errors)
    port = url.port ?? 0
    return url
  }

  /// Ends the server with `SIGTERM`, and waits until it has ended; does nothing if no server is running.
  func stop() async {
    await end(with: SIGTERM)
  }

  /// Ends the server with `SIGKILL`, and waits until it has ended; does nothing if no server is running.
  func kill() async {
    await end(with: SIGKILL)
  }

  private func end(with signal: Int32) async {
    guard let server = runningServer else { return }
    runningServer = nil
    // Sends a signal instead of closing the input, because processes that started at the same time may have inherited
    // copies of the writing end of the pipe.
    if server.process.isRunning { sendSignal(signal, to: server.process.processIdentifier) }
    for await _ in server.termination {}
  }

  /// Waits for the line that the server prints when it is ready, and returns the URL in the line.
  private func waitForURL(output: Pipe, errors: Pipe) async throws -> URL {
    let line = await withCheckedContinuation { continuation in
      // A read blocks its thread, which therefore must not belong to Swift concurrency.
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
      throw StartFailure(
        output: line, errors: errors.fileHandleForReading.readDataToEndOfFile(), installation: server.installation)
    }
    return url
  }

  private struct StartFailure: Error, CustomStringConvertible {
    let output: String
    let errors: Data
    let installation: String

    var description: String {
      "The server did not start. It printed “\(output)” and “\(String(decoding: errors, as: UTF8.self))”. "
        + "Install what it needs: \(installation)"
    }
  }
}

/// Calls the system's `kill`, which ``PythonServerProcess/kill()`` hides inside the actor.
private func sendSignal(_ signal: Int32, to process: pid_t) {
  kill(process, signal)
}
