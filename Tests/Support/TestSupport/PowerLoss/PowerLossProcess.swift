internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The process that serves a volume that can lose power.
///
/// It receives commands and sends a reply to each, in order.
actor PowerLossProcess {
  private struct RunningProcess {
    /// The connection to the standard input and output of the process.
    ///
    /// It is a socket, because writing to a pipe that the process has closed would end the tests with `SIGPIPE`.
    let socket: CInt
    /// A stream without elements, which finishes when the process ends.
    let termination: AsyncStream<Void>
    /// The task that delivers replies until the process closes its output.
    let replyDelivery: Task<Void, Never>
  }

  private var runningProcess: RunningProcess?
  private var isOutputOpen = false
  /// The callers that wait for a reply, in the order of their commands.
  private var waitingCallers: [CheckedContinuation<String, any Error>] = []

  /// Starts the process, and returns when the volume is mounted.
  func start(mountPoint: URL) async throws {
    let (ownSocket, childSocket) = try SocketPair.make()
    let process = Self.makeScriptProcess(arguments: [mountPoint.path(percentEncoded: false)])
    let errorPipe = Pipe()
    let childHandle = FileHandle(fileDescriptor: childSocket, closeOnDealloc: false)
    process.standardInput = childHandle
    process.standardOutput = childHandle
    process.standardError = errorPipe
    let (termination, terminationContinuation) = AsyncStream<Void>.makeStream()
    process.terminationHandler = { _ in terminationContinuation.finish() }
    do {
      try process.run()
    } catch {
      close(ownSocket)
      close(childSocket)
      throw error
    }
    // If this process kept the child's socket open, the output of the child wouldn't end when the child ends.
    close(childSocket)
    isOutputOpen = true
    let lines = Self.lines(from: ownSocket)
    let replyDelivery = Task {
      for await line in lines { self.deliver(line) }
      self.outputEnded()
    }
    runningProcess = RunningProcess(socket: ownSocket, termination: termination, replyDelivery: replyDelivery)
    // The only error is that the process ended without a reply.
    let reply: String? = try? await withCheckedThrowingContinuation { waitingCallers.append($0) }
    guard reply == "ready" else {
      await end()
      throw StartFailure(reply: reply, errors: errorPipe.fileHandleForReading.readDataToEndOfFile())
    }
  }

  /// Sends a command, and returns its reply.
  ///
  /// Cancellation has no effect, because each reply goes to the caller that has waited longest. A caller that stopped
  /// waiting would leave its reply to the next one.
  func send(_ command: String) async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
      guard let runningProcess, isOutputOpen, Self.write("\(command)\n", to: runningProcess.socket) else {
        continuation.resume(throwing: Failure(command: command, reply: nil))
        return
      }
      waitingCallers.append(continuation)
    }
  }

  /// Sends a command, and throws an error unless the reply is `ok`.
  func execute(_ command: String) async throws {
    let reply = try await send(command)
    guard reply == "ok" else { throw Failure(command: command, reply: reply) }
  }

  /// Unmounts the volume, and waits for the process to end; does nothing if no process is running.
  func end() async {
    guard let runningProcess else { return }
    self.runningProcess = nil
    _ = Self.write("quit\n", to: runningProcess.socket)
    for await _ in runningProcess.termination {}
    await runningProcess.replyDelivery.value
    close(runningProcess.socket)
  }

  private func deliver(_ reply: String) {
    // No caller waits for the reply to `quit`.
    guard !waitingCallers.isEmpty else { return }
    waitingCallers.removeFirst().resume(returning: reply)
  }

  private func outputEnded() {
    isOutputOpen = false
    for continuation in waitingCallers { continuation.resume(throwing: Failure(command: nil, reply: nil)) }
    waitingCallers.removeAll()
  }

  /// Returns a process that runs `power_loss.py` when it is started.
  static func makeScriptProcess(arguments: [String]) -> Process {
    var environment = ProcessInfo.processInfo.environment
    // Keeps Python from writing compiled files next to the sources.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", scriptURL.path(percentEncoded: false)] + arguments
    process.environment = environment
    return process
  }

  private static var scriptURL: URL {
    URL(filePath: #filePath).appending(path: "../../../power-loss/power_loss.py").standardizedFileURL
  }

  struct Failure: Error, CustomStringConvertible {
    /// The command; `nil` if it isn't known.
    let command: String?
    /// The reply; `nil` if the process ended without one.
    let reply: String?

    var description: String {
      let outcome = reply.map { "replied “\($0)”" } ?? "ended"
      return "The power-loss volume \(outcome)" + (command.map { " at the command “\($0)”." } ?? ".")
    }
  }

  private struct StartFailure: Error, CustomStringConvertible {
    /// The reply; `nil` if the process ended without one.
    let reply: String?
    /// The standard error of the process.
    let errors: Data

    var description: String {
      let cause = reply.map { ", because its process replied “\($0)”" } ?? ""
      return "The power-loss volume was not mounted\(cause): “\(String(decoding: errors, as: UTF8.self))”. "
        + "It \(PowerLossVolume.requirement)."
    }
  }
}

extension PowerLossProcess {
  /// Writes a command, and returns whether it was written completely.
  ///
  /// One call suffices, because a command always fits into the socket's buffer.
  private static func write(_ text: String, to socket: CInt) -> Bool {
    let bytes = Array(text.utf8)
    return bytes.withUnsafeBytes { StreamSocket.send($0, to: socket) } == bytes.count
  }

  /// Returns the lines that the process writes until it closes its output.
  private static func lines(from socket: CInt) -> AsyncStream<String> {
    let (lines, lineContinuation) = AsyncStream<String>.makeStream()
    // Reading blocks, so it needs a thread that doesn't belong to Swift concurrency.
    Thread.detachNewThread {
      SocketPair.forEachLine(from: socket) { lineContinuation.yield($0) }
      lineContinuation.finish()
    }
    return lines
  }
}
