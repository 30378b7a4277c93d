package import DataStore
package import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The place of a store that several processes of one test share; it is removed when the object is released.
package final class SharedPlace: Sendable {
  /// The stores that several processes can use at the same time, and that survive the end of a process.
  package enum Kind: CaseIterable, Sendable {
    case files
    #if SQLite
      case database
    #endif
    #if PostgreSQL
      case server
    #endif

    /// The stores that access files themselves, without a server.
    package static var inFileSystem: [Kind] {
      #if SQLite
        [.files, .database]
      #else
        [.files]
      #endif
    }

    /// The stores that tests use: those in the file system, and the one on a server unless its tests are skipped.
    package static var allCases: [Kind] {
      #if PostgreSQL
        inFileSystem + (PostgreSQLPlace.isMissing ? [] : [.server])
      #else
        inFileSystem
      #endif
    }
  }

  /// The place, as ``open(_:fileSystem:)`` expects it.
  package let url: URL
  /// The folder of the place, in which a test may have other files.
  package let folder = TemporaryFolder()
  private let kind: Kind
  #if PostgreSQL
    private let postgreSQLPlace: PostgreSQLPlace?
  #endif

  /// Creates the folder and, on a server, the schema; the first process that opens the store creates the rest.
  package init(_ kind: Kind) throws {
    self.kind = kind
    try folder.create()
    switch kind {
    case .files: url = folder.url.appending(path: "store")
    #if SQLite
      case .database: url = folder.url.appending(path: "store.sqlite")
    #endif
    #if PostgreSQL
      case .server: url = folder.url.appending(path: "store.postgresql")
    #endif
    }
    #if PostgreSQL
      postgreSQLPlace = kind == .server ? try PostgreSQLPlace() : nil
      if let postgreSQLPlace { try Data(postgreSQLPlace.address.utf8).write(to: url) }
    #endif
  }

  /// Waits until the effects of a process that has been killed are final.
  ///
  /// Until a server has ended the process's connections, it may still make a commit that the process has sent.
  package func waitForEffects(of process: ChildProcess) throws {
    #if PostgreSQL
      try postgreSQLPlace?.connection().run(
        script: """
          DO $$ BEGIN
            WHILE EXISTS (
              SELECT FROM pg_stat_activity WHERE application_name = '\(Self.connectionName(of: process.identifier))'
            ) LOOP
              PERFORM pg_sleep(0.005), pg_stat_clear_snapshot();
            END LOOP;
          END $$
          """)
    #endif
  }

  #if PostgreSQL
    /// Ends the connections of a process to the server, as the server does when it loses the process.
    package func disconnect(_ process: ChildProcess) throws {
      try postgreSQLPlace?.connection().run(
        script: """
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE application_name = '\(Self.connectionName(of: process.identifier))'
          """)
    }
  #endif

  /// The name of a process's connections to a server.
  private static func connectionName(of process: pid_t) -> String { "process-\(process)" }

  /// Opens the store.
  package func open() throws -> any KeyValueStore { try Self.open(url) }

  /// Opens a store with a long timeout, because many processes may compete for locks and the processor.
  ///
  /// - Parameters:
  ///   - place: A database file if the name ends in `.sqlite`, a file with the address of a server if the name ends in
  ///     `.postgresql`, and the folder of a store in files if the name has no extension.
  ///   - fileSystem: The file system of a store in files or in a database file.
  package static func open(_ place: URL, fileSystem: FileSystem = FileSystem()) throws -> any KeyValueStore {
    switch place.pathExtension {
    #if SQLite
      case "sqlite": SQLiteStore(file: place, busyTimeout: .seconds(60), fileSystem: fileSystem)
    #endif
    #if PostgreSQL
      case "postgresql":
        PostgreSQLStore(
          address: try String(contentsOf: place, encoding: .utf8) + " application_name=\(connectionName(of: getpid()))",
          timeout: .seconds(60))
    #endif
    case "": FileStore(folder: place, fileSystem: fileSystem, lockTimeout: .seconds(60))
    default: throw CocoaError(.featureUnsupported, userInfo: [NSURLErrorKey: place])
    }
  }

  /// The names of files that shouldn't be there when no process uses the store.
  package var temporaryFiles: [String] {
    get throws {
      func names(in folder: URL) throws -> [String] {
        let path = folder.path(percentEncoded: false)
        return FileManager.default.fileExists(atPath: path)
          ? try FileManager.default.contentsOfDirectory(atPath: path) : []
      }
      switch kind {
      case .files: return try names(in: url).filter { !$0.hasSuffix(".value") }
      #if SQLite
        case .database:
          let expected = ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"]
          return try names(in: folder.url).filter { !expected.contains($0) }
      #endif
      #if PostgreSQL
        case .server: return try names(in: folder.url).filter { $0 != "store.postgresql" }
      #endif
      }
    }
  }
}
