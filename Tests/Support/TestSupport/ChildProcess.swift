package import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A running `TestChild` process, and the lines that it prints.
package struct ChildProcess {
  package let identifier: pid_t
  private let socket: FileHandle
  /// The termination status of the child, once it has ended.
  private let termination: Task<End, Never>
  private var lineIterator: AsyncStream<String>.Iterator

  /// The termination status of a child.
  package enum End: Equatable, Sendable {
    case exit(CInt)
    case signal(CInt)

    package static var success: End { .exit(0) }
    package static var killed: End { .signal(SIGKILL) }

    fileprivate init(waitStatus: CInt) {
      // The lowest seven bits are the signal that ended the child, or 0 if it exited. The second byte is the exit code.
      let signal = waitStatus & 0x7F
      self = signal == 0 ? .exit(waitStatus >> 8 & 0xFF) : .signal(signal)
    }
  }

  /// Starts a child.
  ///
  /// - Parameters:
  ///   - command: The command that the child runs.
  ///   - place: The place that is passed to the command, usually that of a store; see ``SharedPlace``.
  ///   - arguments: Further arguments of the command.
  package init(_ command: String, _ place: URL, _ arguments: [String] = []) throws {
    let (ownSocket, childSocket) = try SocketPair.make()
    // If this process kept the child's socket open, the output wouldn't end when the child ends.
    defer { close(childSocket) }
    let words = [Self.executable, command, place.path(percentEncoded: false)] + arguments
    let identifier: pid_t
    do {
      identifier = try Self.spawn(words, inputAndOutput: childSocket)
    } catch {
      close(ownSocket)
      throw error
    }
    self.identifier = identifier
    let socket = FileHandle(fileDescriptor: ownSocket, closeOnDealloc: true)
    self.socket = socket
    let (lines, lineContinuation) = AsyncStream<String>.makeStream()
    lineIterator = lines.makeAsyncIterator()
    let (ends, endContinuation) = AsyncStream<End>.makeStream()
    // A read blocks its thread, which therefore must not belong to Swift concurrency. The thread starts now, and not in
    // the task below, which may start late if other tests are busy: while a child that has ended isn't waited for, the
    // testing library's monitor of exit tests polls for it all the time.
    Thread.detachNewThread {
      SocketPair.forEachLine(from: socket.fileDescriptor) { lineContinuation.yield($0) }
      lineContinuation.finish()
      var status: CInt = 0
      while waitpid(identifier, &status, 0) == -1, errno == EINTR {}
      endContinuation.yield(End(waitStatus: status))
    }
    termination = Task { await ends.first { _ in true }! }
  }

  /// Waits for the next line, and returns it; `nil` at the end of the child's output.
  package mutating func line() async -> String? {
    await lineIterator.next()
  }

  /// Waits for the end of the child's output, and returns all remaining lines.
  package mutating func allLines() async -> [String] {
    var lines: [String] = []
    while let line = await line() { lines.append(line) }
    return lines
  }

  /// Kills the child with `SIGKILL`.
  package func kill() {
    Self.send(SIGKILL, to: identifier)
  }

  /// Starts a task that kills the child after a time, unless the task is cancelled before.
  package func kill(after time: Duration) -> Task<Void, any Error> {
    Task { [identifier] in
      try await Task.sleep(for: time)
      Self.send(SIGKILL, to: identifier)
    }
  }

  /// Suspends the child with `SIGSTOP`, until ``resume()`` or its end.
  package func stop() {
    Self.send(SIGSTOP, to: identifier)
  }

  package func resume() {
    Self.send(SIGCONT, to: identifier)
  }

  /// Writes a line to the child's standard input.
  package func write(_ line: String) {
    socket.write(Data("\(line)\n".utf8))
  }

  private static func send(_ signal: CInt, to identifier: pid_t) {
    #if canImport(Darwin)
      Darwin.kill(identifier, signal)
    #elseif canImport(Glibc)
      Glibc.kill(identifier, signal)
    #elseif canImport(Musl)
      Musl.kill(identifier, signal)
    #endif
  }

  /// Closes the child's standard input.
  package func endInput() {
    shutdown(socket.fileDescriptor, CInt(SHUT_WR))
  }

  /// Waits for the child to end, and returns its termination status.
  package func end() async -> End {
    await termination.value
  }

  /// Starts a child, waits for it to end, and returns its termination status.
  package static func run(_ command: String, _ place: URL, _ arguments: [String] = []) async throws -> End {
    try await ChildProcess(command, place, arguments).end()
  }

  /// The path of `TestChild`, which lies beside the bundle of the tests or beside the executable that runs them.
  private static let executable: String = {
    let bundle = Bundle.allBundles.first { $0.bundleURL.pathExtension == "xctest" }
    let testsURL = bundle?.bundleURL ?? Bundle.main.executableURL!
    return testsURL.deletingLastPathComponent().appending(path: "TestChild").path(percentEncoded: false)
  }()

  /// The environment of a child.
  ///
  /// It disables backtraces of crashes. To print one, the runtime would start another process. That process could hang
  /// after the child has ended, and would keep the child's output open.
  private static var environment: [String] {
    var variables = ProcessInfo.processInfo.environment
    variables["SWIFT_BACKTRACE"] = "enable=no"
    return variables.map { "\($0)=\($1)" }
  }

  private static func spawn(_ words: [String], inputAndOutput socket: CInt) throws -> pid_t {
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
    #else
      var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO)
    var arguments = words.map { strdup($0) } + [nil]
    var variables = environment.map { strdup($0) } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var identifier: pid_t = 0
    let code = posix_spawn(&identifier, words[0], &actions, nil, &arguments, &variables)
    guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EINVAL) }
    return identifier
  }
}
