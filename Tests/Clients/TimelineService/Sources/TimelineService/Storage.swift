internal import ArgumentParser
internal import DataStore
internal import Foundation
internal import Moments

/// The location of the store.
///
/// The store keeps the timelines, and each like until the server has it.
enum Storage: ExpressibleByArgument {
  case file(URL)
  case sqlite(URL)
  case postgreSQL(String)

  static let valueName = "file:DIR|sqlite:FILE|postgresql://…"
  static let `default` = Storage.file(URL.currentDirectory().appending(path: "timelines"))

  init?(argument: String) {
    if let path = argument.withoutPrefix("file:") {
      self = .file(URL(filePath: path))
    } else if let path = argument.withoutPrefix("sqlite:") {
      self = .sqlite(URL(filePath: path))
    } else if argument.hasPrefix("postgresql://") {
      self = .postgreSQL(argument)
    } else {
      return nil
    }
  }

  var defaultValueDescription: String {
    switch self {
    case .file(let folder): "file:\(folder.path(percentEncoded: false))"
    case .sqlite(let file): "sqlite:\(file.path(percentEncoded: false))"
    case .postgreSQL(let address): address
    }
  }

  /// Opens the store.
  ///
  /// - Throws: `ValidationError` if the service was built without support for this kind of store.
  func open() throws -> any PersistentDataStoreType {
    switch self {
    case .file(let folder): return PersistentDataStore(FileStore(folder: folder))
    case .sqlite(let file):
      #if SQLite
        return PersistentDataStore(SQLiteStore(file: file))
      #else
        throw ValidationError("Build the service with --traits SQLite to keep timelines in \(file.lastPathComponent).")
      #endif
    case .postgreSQL(let address):
      #if PostgreSQL
        // While the PostgreSQL server can't be reached, a new like is shown, and waits at most this long to be stored.
        return PersistentDataStore(PostgreSQLStore(address: address, timeout: .seconds(60)))
      #else
        throw ValidationError("Build the service with --traits PostgreSQL to keep timelines at \(address).")
      #endif
    }
  }
}

extension String {
  fileprivate func withoutPrefix(_ prefix: String) -> String? {
    guard hasPrefix(prefix), count > prefix.count else { return nil }
    return String(dropFirst(prefix.count))
  }
}
