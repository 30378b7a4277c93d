#if PostgreSQL && canImport(Glibc)
  import Foundation
  import Glibc
  import TestSupport

  /// A small volume in memory, which a test can fill.
  ///
  /// Only root can mount it.
  final class MemoryVolume: Sendable {
    /// Whether this process can mount a volume.
    static let isAvailable: Bool = {
      do {
        _ = try MemoryVolume(byteCount: 1 << 20)
        return true
      } catch {
        return false
      }
    }()

    private let folder = TemporaryFolder()

    var path: String { folder.url.path(percentEncoded: false) }

    private var filler: URL { folder.url.appending(path: "filler") }

    /// Mounts a volume.
    ///
    /// - Parameter owner: The user who owns the volume's top folder; `nil` for the user of this process.
    init(byteCount: Int, owner: String? = nil) throws {
      try folder.create()
      _ = try run("mount", "-t", "tmpfs", "-o", "size=\(byteCount)", "tmpfs", path)
      if let owner { _ = try run("chown", owner, path) }
    }

    deinit {
      // Once the volume is unmounted, the folder is empty, and the `deinit` of `TemporaryFolder` removes it.
      _ = try? run("umount", "--lazy", path)
    }

    /// Fills the volume with a file.
    func fill() throws {
      let file = open(filler.path(percentEncoded: false), O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      guard file >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
      defer { close(file) }
      let bytes = [UInt8](repeating: 0, count: 4_096)
      while write(file, bytes, bytes.count) > 0 {}
      guard errno == ENOSPC else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }

    /// Removes the file that fills the volume.
    func removeFiller() throws {
      try FileManager.default.removeItem(at: filler)
    }
  }

  /// Runs a program, which inherits no open file.
  ///
  /// Foundation's `Process` would wait for the end of a server that the program starts, because the server would
  /// inherit the writing end of the pipe for the output.
  ///
  /// - Returns: The program's output.
  func run(_ command: String...) throws -> String {
    let temporary = try TemporaryFolder.created()
    let output = temporary.url.appending(path: "output")
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(
      &actions, STDOUT_FILENO, output.path(percentEncoded: false), O_WRONLY | O_CREAT, 0o600)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    // Closes the inherited files, and then runs the command.
    let script = #"for file in /proc/self/fd/*; do n=${file##*/}; [ $n -le 2 ] || eval "exec $n>&-"; done; exec "$@""#
    var arguments = (["bash", "-c", script, "bash"] + command).map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var processID: pid_t = 0
    var status: CInt = 0
    guard posix_spawnp(&processID, "bash", &actions, nil, &arguments, environ) == 0,
      waitpid(processID, &status, 0) == processID, status == 0
    else { throw ProgramError(command: command, status: status) }
    return try String(contentsOf: output, encoding: .utf8)
  }

  private struct ProgramError: Error {
    let command: [String]
    let status: CInt
  }
#endif
