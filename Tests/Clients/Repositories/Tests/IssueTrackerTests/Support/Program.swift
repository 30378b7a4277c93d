import Foundation
import Synchronization

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A running process, and the lines that it prints.
///
/// Foundation's `Process` isn't used, because it crashes at times if a test starts hundreds of processes.
struct Program {
  /// The end of a process.
  private enum End: Equatable {
    case exit(CInt)
    case signal(CInt)

    init(waitStatus: CInt) {
      // The lowest seven bits are the signal that ended the process, or 0 if it exited. The second byte is the exit code.
      let signal = waitStatus & 0x7F
      self = signal == 0 ? .exit(waitStatus >> 8 & 0xFF) : .signal(signal)
    }
  }

  /// The processes that have been started and not waited for, so that no signal reaches another process.
  private static let running = Mutex<Set<pid_t>>([])

  /// The identifier of the process.
  let identifier: pid_t
  /// Kept open, because the server ends when its standard input is closed.
  private let input: FileHandle
  private let termination: Task<End, Never>
  private var lines: AsyncStream<String>.Iterator

  /// Starts a program of this package.
  init(named name: String, _ arguments: [String]) throws {
    let bundle = Bundle.allBundles.first { $0.bundleURL.pathExtension == "xctest" }
    let tests = bundle?.bundleURL ?? Bundle.main.executableURL!
    try self.init(tests.deletingLastPathComponent().appending(path: name).path(percentEncoded: false), arguments)
  }

  init(_ executable: String, _ arguments: [String]) throws {
    let (identifier, input, output) = try Self.running.withLock {
      let (identifier, input, output) = try Self.spawn([executable] + arguments)
      $0.insert(identifier)
      return (identifier, input, output)
    }
    self.identifier = identifier
    self.input = input
    let (lines, lineContinuation) = AsyncStream<String>.makeStream()
    self.lines = lines.makeAsyncIterator()
    let (ends, endContinuation) = AsyncStream<End>.makeStream()
    // A read blocks its thread, which therefore must not belong to Swift concurrency.
    Thread.detachNewThread {
      var line = Data()
      while case let data = output.availableData, !data.isEmpty {
        line.append(data)
        // A last line without an end was cut off by a kill.
        var parts = line.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        line = Data(parts.removeLast())
        for part in parts { lineContinuation.yield(String(decoding: part, as: UTF8.self)) }
      }
      lineContinuation.finish()
      var info = siginfo_t()
      while waitid(P_PID, id_t(identifier), &info, WEXITED | WNOWAIT) == -1, errno == EINTR {}
      var status: CInt = 0
      Self.running.withLock {
        $0.remove(identifier)
        while waitpid(identifier, &status, 0) == -1, errno == EINTR {}
      }
      endContinuation.yield(End(waitStatus: status))
    }
    termination = Task { await ends.first { _ in true }! }
  }

  /// Waits for the next line, and returns it; `nil` at the end of the output.
  mutating func line(isolation: isolated (any Actor)? = #isolation) async -> String? {
    await lines.next(isolation: isolation)
  }

  /// Waits for the end of the output, and returns the remaining lines.
  mutating func remainingLines() async -> [String] {
    var rest: [String] = []
    while let line = await line() { rest.append(line) }
    return rest
  }

  /// Kills the process with `SIGKILL`, and waits for its end.
  func kill(isolation: isolated (any Actor)? = #isolation) async {
    Self.kill(identifier)
    await end()
  }

  /// Starts a task that kills the process after a time, unless the task is cancelled before.
  ///
  /// The task returns whether it has killed the process.
  func kill(after time: Duration) -> Task<Bool, Never> {
    Task { [identifier] in
      do {
        try await Task.sleep(for: time)
      } catch {
        return false
      }
      Self.kill(identifier)
      return true
    }
  }

  private static func kill(_ identifier: pid_t) {
    running.withLock { if $0.contains(identifier) { sendKill(to: identifier) } }
  }

  /// Waits for the end of the process.
  func end(isolation: isolated (any Actor)? = #isolation) async {
    _ = await termination.value
  }

  /// Whether `SIGKILL` ends the process.
  var wasKilled: Bool { get async { await termination.value == .signal(SIGKILL) } }

  /// Whether the process exits by itself with status 0.
  var hasSucceeded: Bool { get async { await termination.value == .exit(0) } }

  // MARK: - Starting

  /// Starts a process, and returns its identifier, standard input and standard output.
  private static func spawn(_ words: [String]) throws -> (pid_t, FileHandle, FileHandle) {
    let (input, output) = (try makePipe(), try makePipe())
    defer {
      close(input.reading)
      close(output.writing)
    }
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t?
    #else
      var actions = posix_spawn_file_actions_t()
    #endif
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input.reading, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output.writing, STDOUT_FILENO)
    let environment = ProcessInfo.processInfo.environment.merging(
      ["PYTHONDONTWRITEBYTECODE": "1", "SWIFT_BACKTRACE": "enable=no"]) { $1 }
    var arguments = words.map { strdup($0) } + [nil]
    var variables = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { for text in arguments + variables { free(text) } }
    var identifier: pid_t = 0
    let code = posix_spawn(&identifier, words[0], &actions, nil, &arguments, &variables)
    let handles = [input.writing, output.reading].map { FileHandle(fileDescriptor: $0, closeOnDealloc: true) }
    guard code == 0 else { throw POSIXError(POSIXErrorCode(rawValue: code) ?? .EINVAL) }
    return (identifier, handles[0], handles[1])
  }

  /// Makes a pipe that no other process inherits: all processes are started under one lock.
  private static func makePipe() throws -> (reading: CInt, writing: CInt) {
    var descriptors: [CInt] = [0, 0]
    guard pipe(&descriptors) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL) }
    for descriptor in descriptors { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    return (descriptors[0], descriptors[1])
  }
}

/// Calls the system's `kill`, which ``Program/kill()`` hides.
private func sendKill(to process: pid_t) { kill(process, SIGKILL) }
