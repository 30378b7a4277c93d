#if PostgreSQL && canImport(Glibc)
  import Foundation
  import TestSupport

  @testable import DataStore

  /// A PostgreSQL server for one test.
  ///
  /// `init` starts it, and `deinit` stops it.
  final class PostgreSQLCluster: Sendable {
    /// The user that runs the server if the tests run as root, because the server refuses to run as root.
    static let owner = "postgres"

    private static let script = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Support/postgresql/cluster").standardizedFileURL.path(percentEncoded: false)

    private let temporary = TemporaryFolder()
    let address: String

    private var folder: URL { temporary.url.appending(path: "cluster") }

    /// The folder of the server's files.
    var dataFolder: URL { folder.appending(path: "data") }

    init() throws {
      try temporary.create()
      let path = temporary.url.appending(path: "cluster").path(percentEncoded: false)
      address = try run(Self.script, "start", path).trimmingCharacters(in: .newlines)
    }

    deinit {
      // The server can't shut down cleanly while its disk is full.
      do { try stop() } catch { _ = try? run(Self.script, "kill", folder.path(percentEncoded: false)) }
    }

    func stop() throws {
      _ = try run(Self.script, "stop", folder.path(percentEncoded: false))
    }

    func start() throws {
      _ = try run(Self.script, "start", folder.path(percentEncoded: false))
    }

    /// Waits until the server accepts connections again after a crash, and starts it if it has shut down.
    func recover() async throws {
      let lockFile = dataFolder.appending(path: "postmaster.pid").path(percentEncoded: false)
      while (try? PostgreSQLConnection(address, timeout: .seconds(5))) == nil {
        // A start may fail while the old server is still shutting down. The loop then tries again.
        if !FileManager.default.fileExists(atPath: lockFile) { _ = try? start() }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }
#endif
