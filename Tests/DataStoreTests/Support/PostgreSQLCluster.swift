#if PostgreSQL && canImport(Glibc)
  import Foundation
  import TestSupport

  @testable import DataStore

  /// A PostgreSQL server of one test, which runs until the object is released.
  final class PostgreSQLCluster: Sendable {
    /// The user who runs the server, because it refuses to run as root.
    static let owner = "postgres"

    private static let script = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Support/postgresql/cluster").standardizedFileURL.path(percentEncoded: false)

    private let temporary = TemporaryFolder()
    let address: String

    private var folder: URL { temporary.url.appending(path: "cluster") }

    /// The folder of the server's files.
    var data: URL { folder.appending(path: "data") }

    init() throws {
      try temporary.create()
      let path = temporary.url.appending(path: "cluster").path(percentEncoded: false)
      address = try run(Self.script, "start", path).trimmingCharacters(in: .newlines)
    }

    deinit {
      // The server can't stop in order while its disk is full.
      do { try stop() } catch { _ = try? run(Self.script, "kill", folder.path(percentEncoded: false)) }
    }

    func stop() throws {
      _ = try run(Self.script, "stop", folder.path(percentEncoded: false))
    }

    func start() throws {
      _ = try run(Self.script, "start", folder.path(percentEncoded: false))
    }

    /// Waits until the server has started again after a crash, and starts it if it has ended instead.
    func recover() async throws {
      let lock = data.appending(path: "postmaster.pid").path(percentEncoded: false)
      while (try? PostgreSQLConnection(address, timeout: .seconds(5))) == nil {
        // If the server is about to end, it doesn't start, and the next attempt finds it ended.
        if !FileManager.default.fileExists(atPath: lock) { _ = try? start() }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }
#endif
