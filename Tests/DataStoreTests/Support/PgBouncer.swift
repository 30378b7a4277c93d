#if PostgreSQL && canImport(Glibc)
  import Foundation
  import TestSupport

  /// PgBouncer in front of the tests' server.
  ///
  /// `init` starts it, and `deinit` stops it.
  final class PgBouncer: Sendable {
    private static let program = "/usr/sbin/pgbouncer"

    static var isMissing: Bool { !FileManager.default.isExecutableFile(atPath: program) }

    private let temporary = TemporaryFolder()
    private let process = Process()

    /// The setting of an address that leads to PgBouncer.
    let host: String

    /// - Parameters:
    ///   - serverFolder: The folder of the server's Unix-domain socket.
    ///   - schema: The schema for the tables, because PgBouncer ignores the `options` of an address.
    ///   - mode: The pool mode.
    init(before serverFolder: String, schema: String, mode: String) throws {
      try temporary.create()
      let folder = temporary.url.path(percentEncoded: false)
      host = "\(folder) port=6432"
      let configuration = """
        [databases]
        * = user=postgres host=\(serverFolder) connect_query='SET search_path = \(schema)'
        [pgbouncer]
        pool_mode = \(mode)
        unix_socket_dir = \(folder)
        listen_port = 6432
        auth_type = any
        ignore_startup_parameters = options
        default_pool_size = 5
        logfile = \(folder)/log
        """
      let file = temporary.url.appending(path: "pgbouncer.ini")
      try configuration.write(to: file, atomically: true, encoding: .utf8)
      // PgBouncer refuses to run as root.
      let isRoot = getuid() == 0
      if isRoot { _ = try run("/bin/chown", "-R", PostgreSQLCluster.owner, folder) }
      process.executableURL = URL(filePath: isRoot ? "/usr/sbin/runuser" : Self.program)
      process.arguments =
        (isRoot ? ["-u", PostgreSQLCluster.owner, "--", Self.program] : []) + [file.path(percentEncoded: false)]
      process.standardError = FileHandle.nullDevice
      process.standardOutput = FileHandle.nullDevice
      try process.run()
      let socket = "\(folder)/.s.PGSQL.6432"
      while !FileManager.default.fileExists(atPath: socket) { usleep(10_000) }
    }

    deinit {
      process.terminate()
      process.waitUntilExit()
    }
  }
#endif
