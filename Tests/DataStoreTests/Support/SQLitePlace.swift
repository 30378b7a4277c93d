#if SQLite
  import Foundation
  import TestSupport
  import Testing

  @testable import DataStore

  #if canImport(Darwin)
    import Darwin
  #elseif canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// The database of one test: it doesn't exist at first, and is removed with its folder when the test ends.
  final class SQLitePlace: Sendable {
    let temporary = TemporaryFolder()
    var folder: URL { temporary.url }
    var file: URL { folder.appending(path: "store.sqlite") }
    var path: String { file.path(percentEncoded: false) }

    func backend(busyTimeout: Duration = .seconds(5), fileSystem: FileSystem = FileSystem()) -> SQLiteBackend {
      SQLiteBackend(file: file, busyTimeout: busyTimeout, now: { Date() }, fileSystem: fileSystem)
    }

    /// Opens a connection to an existing database, as another program does.
    func connection(busyTimeout: Duration = .seconds(5), isReadOnly: Bool = false) throws -> SQLiteConnection {
      // `SQLiteConnection` follows no symbolic links, and the path of the temporary folder may contain some.
      let folder = try FileSystem().resolve(FileSystem().openFolder(folder.path(percentEncoded: false)))
      return try SQLiteConnection(
        path: "\(folder)/store.sqlite", permissionsOf: nil, busyTimeout: busyTimeout, runsTriggers: true,
        isReadOnly: isReadOnly)
    }

    /// Replaces the bytes stored under a name with corrupt ones.
    func corrupt(_ name: String) throws {
      try connection().run(
        "UPDATE value SET bytes = ?1 WHERE name = ?2", .blob(Data("corrupt".utf8)), .text(name))
    }

    /// Executes a statement in the database, bypassing the store.
    func execute(_ sql: String) throws {
      try connection().run(sql)
    }

    /// Corrupts the database, even while it is in use.
    ///
    /// The changes are made through SQLite. If the file were opened directly, closing it would release this process's
    /// locks on it.
    func corruptSchema() throws {
      let connection = try connection()
      try connection.run("PRAGMA writable_schema = ON")
      // This moves the table's root page far beyond the end of the file.
      try connection.run("UPDATE sqlite_master SET rootpage = 1000000 WHERE name = 'value'")
      // A different number makes other connections read the schema again.
      try connection.run("PRAGMA schema_version = 1000")
    }

    func makeFolder() throws {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    /// The sorted names of all files.
    var contents: [String] {
      get throws { try FileManager.default.contentsOfDirectory(atPath: folder.path(percentEncoded: false)).sorted() }
    }

    func permissions(of name: String) throws -> mode_t {
      var status = stat()
      try #require(lstat(folder.appending(path: name).path(percentEncoded: false), &status) == 0)
      return status.st_mode & 0o777
    }

    /// All bytes of the database.
    ///
    /// Use it only while no connection is open, because closing the file after the read would release this process's
    /// locks on it.
    var bytes: Data {
      get throws { try Data(contentsOf: file) }
    }
  }
#endif
