internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The process of a GraphQL server, which can be stopped and started again on the same port.
actor BFFProcess {
  private struct Running {
    let process: Process
    /// Closed with the tests' own process at the latest, by which the server ends.
    let input: FileHandle
    /// Ends with the process.
    let exits: AsyncStream<Void>
  }

  private let state: URL?
  private let options: [String]
  private var port = 0
  private var running: Running?

  /// - Parameters:
  ///   - state: Where the server keeps its state; nil for one that forgets at its end.
  ///   - options: More options of its command line.
  init(state: URL?, options: [String]) {
    self.state = state
    self.options = options
  }

  /// Starts the server, and gives the address of its GraphQL endpoint once it accepts connections.
  func start() async throws -> URL {
    precondition(running == nil, "The server runs already: stop it first.")
    var arguments = [Self.scriptURL.path, "--port", "\(port)"]
    arguments += ["--parent", "\(ProcessInfo.processInfo.processIdentifier)"]
    if let state { arguments += ["--state", state.path] }
    arguments += options
    let process = Self.python(arguments: arguments)
    let (input, output, errors) = (Pipe(), Pipe(), Pipe())
    process.standardInput = input
    process.standardOutput = output
    process.standardError = errors
    let (exits, exit) = AsyncStream<Void>.makeStream()
    process.terminationHandler = { _ in exit.finish() }
    try process.run()
    running = Running(process: process, input: input.fileHandleForWriting, exits: exits)
    let url = try await Self.address(output: output, errors: errors)
    port = url.port ?? 0
    return url
  }

  /// Has the server end in its own way, and waits for it; nothing happens where none runs.
  func stop() async {
    await end(with: SIGTERM)
  }

  /// Ends the server at once, and waits for it; nothing happens where none runs.
  func kill() async {
    await end(with: SIGKILL)
  }

  private func end(with signal: Int32) async {
    guard let running else { return }
    self.running = nil
    // The end of its input would not do: processes started at the same time may have inherited the pipe's other end.
    if running.process.isRunning { sendSignal(signal, to: running.process.processIdentifier) }
    for await _ in running.exits {}
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

  static func python(arguments: [String]) -> Process {
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
    URL(filePath: #filePath).appending(path: "../../../bff/server.py").standardizedFileURL
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

/// The system's `kill`, which the method of the same name hides.
private func sendSignal(_ signal: Int32, to process: pid_t) {
  kill(process, signal)
}
