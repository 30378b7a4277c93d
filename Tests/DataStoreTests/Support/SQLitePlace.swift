#if SQLite
  import Foundation
  import Testing

  @testable import DataStore

  #if canImport(Darwin)
    import Darwin
  #elseif canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// A database of a test's own, at first not there, removed with its folder when the test ends.
  final class SQLitePlace: Sendable {
    let temporary = TemporaryFolder()
    var folder: URL { temporary.url }
    var file: URL { folder.appending(path: "store.sqlite") }
    var path: String { file.path(percentEncoded: false) }

    func backend(busyTimeout: Duration = .seconds(5), fileSystem: FileSystem = FileSystem()) -> SQLiteBackend {
      SQLiteBackend(file: file, busyTimeout: busyTimeout, now: { Date() }, fileSystem: fileSystem)
    }

    /// A connection like that of another program, to a database that is there.
    func connection(busyTimeout: Duration = .seconds(5)) throws -> SQLiteConnection {
      let folder = try FileSystem().resolve(FileSystem().openFolder(folder.path(percentEncoded: false)))
      return try SQLiteConnection(
        path: "\(folder)/store.sqlite", permissionsOf: nil, busyTimeout: busyTimeout, runsTriggers: true)
    }

    /// Replaces what is stored under a name by bytes that are no value.
    func spoil(_ name: String) throws {
      try connection().run(
        "UPDATE value SET bytes = ?1 WHERE name = ?2", .blob(Data("spoiled".utf8)), .text(name))
    }

    /// Says something to the database, past the store.
    func execute(_ sql: String) throws {
      try connection().run(sql)
    }

    /// Damages a database that is in use, as a commit: to open and close the file would end the locks on it.
    func spoilSchema() throws {
      let connection = try connection()
      try connection.run("PRAGMA writable_schema = ON")
      try connection.run("UPDATE sqlite_master SET rootpage = 1000000 WHERE name = 'value'")
      try connection.run("PRAGMA schema_version = 1000")
    }

    func makeFolder() throws {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    /// The names of all files, in order.
    var contents: [String] {
      get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false)).sorted() }
    }

    func mode(of name: String) throws -> mode_t {
      var status = stat()
      try #require(lstat(folder.appending(path: name).path(percentEncoded: false), &status) == 0)
      return status.st_mode & 0o777
    }

    /// All bytes of the database, for when no connection to it is open: reading the file would end its locks.
    var bytes: Data {
      get throws { try Data(contentsOf: file) }
    }
  }
#endif
