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
  private struct Running {
    /// The connection to the standard input and output of the process.
    ///
    /// It is a socket, because writing to a pipe that the process has closed would end the tests with `SIGPIPE`.
    let socket: CInt
    /// A stream that finishes when the process ends.
    let exits: AsyncStream<Void>
    /// The task that delivers replies until the process closes its output.
    let replies: Task<Void, Never>
  }

  private var running: Running?
  private var isOpen = false
  /// The callers that wait for a reply, in the order of their commands.
  private var waiting: [CheckedContinuation<String, any Error>] = []

  /// Starts the process, and returns when the volume is mounted.
  func start(mountPoint: URL) async throws {
    let (own, other) = try SocketPair.make()
    let process = Self.python(arguments: [mountPoint.path(percentEncoded: false)])
    let errors = Pipe()
    let otherEnd = FileHandle(fileDescriptor: other, closeOnDealloc: false)
    process.standardInput = otherEnd
    process.standardOutput = otherEnd
    process.standardError = errors
    let (exits, exit) = AsyncStream<Void>.makeStream()
    process.terminationHandler = { _ in exit.finish() }
    do {
      try process.run()
    } catch {
      close(own)
      close(other)
      throw error
    }
    // If this process kept the other end open, the output of the child process wouldn't end when the child ends.
    close(other)
    isOpen = true
    let lines = Self.lines(from: own)
    let replies = Task {
      for await line in lines { self.received(line) }
      self.outputEnded()
    }
    running = Running(socket: own, exits: exits, replies: replies)
    do {
      let reply = try await withCheckedThrowingContinuation { waiting.append($0) }
      guard reply == "ready" else { throw Failure(command: "start", reply: reply) }
    } catch {
      await end()
      throw StartFailure(errors: errors.fileHandleForReading.readDataToEndOfFile())
    }
  }

  /// Sends a command, and returns its reply.
  ///
  /// Cancellation has no effect, because each reply goes to the caller that has waited longest. A caller that stopped
  /// waiting would leave its reply to the next one.
  func send(_ command: String) async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
      guard let running, isOpen, Self.write("\(command)\n", to: running.socket) else {
        continuation.resume(throwing: Failure(command: command, reply: nil))
        return
      }
      waiting.append(continuation)
    }
  }

  /// Sends a command, and throws an error unless the reply is `ok`.
  func execute(_ command: String) async throws {
    let reply = try await send(command)
    guard reply == "ok" else { throw Failure(command: command, reply: reply) }
  }

  /// Unmounts the volume, and waits for the process to end; does nothing if no process is running.
  func end() async {
    guard let running else { return }
    self.running = nil
    _ = Self.write("quit\n", to: running.socket)
    for await _ in running.exits {}
    await running.replies.value
    close(running.socket)
  }

  private func received(_ line: String) {
    // No caller waits for the reply to `quit`.
    guard !waiting.isEmpty else { return }
    waiting.removeFirst().resume(returning: line)
  }

  private func outputEnded() {
    isOpen = false
    for continuation in waiting { continuation.resume(throwing: Failure(command: nil, reply: nil)) }
    waiting.removeAll()
  }

  static func python(arguments: [String]) -> Process {
    var environment = ProcessInfo.processInfo.environment
    let python = environment["MOMENTS_POWER_LOSS_PYTHON"] ?? "python3"
    // Keeps Python from writing compiled files next to the sources.
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [python, scriptURL.path(percentEncoded: false)] + arguments
    process.environment = environment
    return process
  }

  private static var scriptURL: URL {
    URL(filePath: #filePath).appending(path: "../../../power-loss/power_loss.py").standardizedFileURL
  }

  struct Failure: Error, CustomStringConvertible {
    let command: String?
    let reply: String?

    var description: String {
      let reply = reply.map { "replied “\($0)”" } ?? "ended"
      return "The power-loss volume \(reply)" + (command.map { " at the command “\($0)”." } ?? ".")
    }
  }

  private struct StartFailure: Error, CustomStringConvertible {
    let errors: Data

    var description: String {
      "The power-loss volume was not mounted: “\(String(decoding: errors, as: UTF8.self))”. "
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
    let (lines, line) = AsyncStream<String>.makeStream()
    // Reading blocks, so it needs a thread that doesn't belong to Swift concurrency.
    Thread.detachNewThread {
      SocketPair.forEachLine(from: socket) { line.yield($0) }
      line.finish()
    }
    return lines
  }
}
