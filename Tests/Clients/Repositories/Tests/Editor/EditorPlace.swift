internal import Foundation
internal import Synchronization

@testable internal import DataStore

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The place of the store that the editors share.
enum EditorPlace {
  private static let calls = Atomic(0)

  /// The number of calls of the file system that this process has begun.
  static var callCount: Int { calls.load(ordering: .relaxed) }

  /// Opens a store.
  ///
  /// - Parameters:
  ///   - place: A database file if the name ends in `.sqlite`, the address of a PostgreSQL server if it has the prefix
  ///     `host=`, and otherwise a folder.
  ///   - fatalCall: The number, from 1, of the call of the file system before which the process kills itself.
  static func open(_ place: String, dyingAtCall fatalCall: Int?) -> any KeyValueStore {
    let fileSystem = FileSystem { _ in
      if calls.add(1, ordering: .relaxed).newValue == fatalCall { kill(getpid(), SIGKILL) }
      return nil
    }
    #if SQLite
      if place.hasSuffix(".sqlite") {
        return SQLiteStore(file: URL(filePath: place), busyTimeout: .seconds(60), fileSystem: fileSystem)
      }
    #endif
    #if PostgreSQL
      if place.hasPrefix("host=") {
        return PostgreSQLStore(address: "\(place) application_name=editor-\(getpid())", timeout: .seconds(60))
      }
    #endif
    return FileStore(folder: URL(filePath: place), fileSystem: fileSystem, lockTimeout: .seconds(60))
  }
}
